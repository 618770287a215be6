"""Recognizes requests that a web page may have sent to a port of this machine.

A page in the developer's browser reaches loopback in two ways: across origins, with an `Origin` or
`Sec-Fetch-Site` that names this, also where CORS hides the answer; and through a host name of its
own that resolves to 127.0.0.1 (DNS rebinding), with that name as `Host`.
"""

from collections.abc import Collection, Iterable
from typing import Final

LOCAL_NAMES: Final = frozenset({"127.0.0.1", "localhost", "[::1]"})
# Sent by a browser for an address that the user typed, and by a page to its own server.
OWN_SITE: Final = frozenset({"none", "same-origin"})


def refusal(
    headers: Iterable[tuple[str, str]], *, port: int, hosts: Collection[str] = frozenset()
) -> str:
    """Returns why a request is refused; "" for one that no web page can have sent.

    `hosts` are the names under which tunnels forward to this port.
    """
    given = [(name.lower(), value.strip().lower()) for name, value in headers]
    sites = {value for name, value in given if name == "sec-fetch-site"}
    if any(name == "origin" for name, _ in given) or not OWN_SITE.issuperset(sites):
        return "requests of web pages are refused"
    return wrong_host(given, port=port, hosts=hosts)


def wrong_host(
    headers: Iterable[tuple[str, str]], *, port: int, hosts: Collection[str] = frozenset()
) -> str:
    """Returns why the `Host` of a request is not this port's; "" if it is."""
    named = [value.strip().lower() for name, value in headers if name.lower() == "host"]
    if len(named) == 1 and (_local(named[0], port) or _without_port(named[0]) in hosts):
        return ""
    return f"the Host {', '.join(named) or 'is missing'} is not this machine's"


def _local(host: str, port: int) -> bool:
    return host in {f"{name}:{port}" for name in LOCAL_NAMES}


def _without_port(host: str) -> str:
    name, colon, port = host.rpartition(":")
    return name if colon and port.isdecimal() else host
