"""Rejects addresses of destinations that a deployed function cannot reach, or not safely."""

import ipaddress
from collections.abc import Collection, Mapping
from typing import Final, Literal
from urllib.parse import urlsplit

from webhook_inbox.domain.errors import ConfigurationError
from webhook_inbox.domain.manifest import LOCAL, DestinationSpec

LOOPBACK: Final = frozenset({"localhost", "127.0.0.1", "::1"})
Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Kind = Literal["loopback", "private", "placeholder"]
MEANING: Final[Mapping[Kind, str]] = {
    "loopback": "is the function's own machine in Lambda",
    "private": "is an address of a private network, which a function reaches in its VPC only",
    "placeholder": "is a name for examples and tests, which belongs to no system",
}
# RFC 2606 and 6761; the names of private networks are those of AWS and of multicast DNS.
_PLACEHOLDERS: Final = (
    ".example", ".example.com", ".example.net", ".example.org", ".invalid", ".test",
)  # fmt: skip
_PRIVATE: Final = (".home.arpa", ".internal", ".lan", ".local")
# IPv6 addresses that contain an IPv4 address in their last 32 bits: IPv4-compatible, and NAT64.
_CONTAINING: Final = (ipaddress.IPv6Network("::/96"), ipaddress.IPv6Network("64:ff9b::/96"))


def check_addresses(
    destinations: Mapping[str, DestinationSpec],
    *,
    allowed: Mapping[str, Collection[str]],
    stage: str,
) -> None:
    """Rejects the first address that a deployed stage must not have, unless it is allowed.

    Args:
        destinations: the destinations by name.
        allowed: the `allow` lists by table, `destinations.NAME`.
        stage: the stage; every address is permitted in the stage "local".

    Raises:
        ConfigurationError: names the destination, the stage and the remedy.
    """
    if stage == LOCAL:
        return
    for name, spec in destinations.items():
        kind = kind_of(spec.base_url)
        if kind and kind not in allowed[f"destinations.{name}"]:
            raise ConfigurationError(
                f'[destinations.{name}] base_url: "{spec.base_url}" {MEANING[kind]}, and stage'
                f' "{stage}" is deployed; give the address of the stage in'
                f" [stages.{stage}.destinations.{name}], or keep this one with"
                f' allow = ["{kind}"] in [destinations.{name}]'
            )


def kind_of(url: str) -> Kind | None:
    """Returns the kind of a URL that a deployed stage must not have; None for a public one."""
    host = host_of(url)
    address = _address(host)
    return _kind_of_name(host) if address is None else _kind_of_address(address)


def host_of(url: str) -> str:
    """Returns the host of a URL in lower case, without the dot that ends a complete name."""
    return (urlsplit(url).hostname or "").removesuffix(".")


def _address(host: str) -> Address | None:
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return None
    if isinstance(address, ipaddress.IPv6Address):
        contains = any(address in network for network in _CONTAINING) and int(address) > 1
        contained = ipaddress.IPv4Address(int(address) & 0xFFFFFFFF) if contains else None
        return address.ipv4_mapped or contained or address
    return address


def _kind_of_address(address: Address) -> Kind | None:
    if address.is_loopback or address.is_unspecified:
        return "loopback"
    return None if address.is_global else "private"


def _kind_of_name(host: str) -> Kind | None:
    name = f".{host}"
    if name.endswith(".localhost"):
        return "loopback"
    if name.endswith(_PLACEHOLDERS):
        return "placeholder"
    if name.rpartition(".")[2][:1].isdigit():  # resolvers accept short forms such as 127.1
        return "loopback" if host.startswith("127.") else "private"
    return "private" if name.endswith(_PRIVATE) or "." not in host else None
