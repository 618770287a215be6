"""Hypotheses about headers and URLs that proxies and frameworks change."""

import re
from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations, permutations, product
from typing import Final
from urllib.parse import unquote, urlsplit

from webhook_inbox import providers
from webhook_inbox.client.diagnosis.hypothesis import Hypothesis, RejectionCause, Trial
from webhook_inbox.client.diagnosis.schemes import settings_of
from webhook_inbox.ingest.verification import unread

PREFIXES: Final = ("sha256=", "sha1=", "v1=", "v0=", "v1,")
# The number of received headers that are tried in place of a missing one.
MOST_NAMES: Final = 12
FORWARDED: Final = ("x-forwarded-host", "x-original-host", "x-forwarded-server")


def headers(trial: Trial) -> Iterator[Trial]:
    """Reverts common changes of headers."""
    came = trial.delivery.headers
    renamed = {_name(name): value for name, value in came.items()}
    if renamed != came:
        cause = RejectionCause(
            "header-renamed",
            "the headers were renamed: "
            + ", ".join(sorted(name for name in came if _name(name) != name)),
            "keep the provider's header names in the proxy or framework",
        )
        yield trial.without(cause, delivery=replace(trial.delivery, headers=renamed))
    for name in sorted(providers.load(trial.spec).signature_headers & came.keys()):
        for words, value in _values(came[name]):
            if value != came[name]:
                cause = RejectionCause(
                    "header-changed", f"the header {name} {words}", "forward headers unchanged"
                )
                changed = replace(trial.delivery, headers={**came, name: value})
                yield trial.without(cause, delivery=changed)


def names(trial: Trial) -> Iterator[Trial]:
    """Reads each header that is missing from another one that was received."""
    provider, came = providers.load(trial.spec), trial.delivery.headers
    read = provider.signature_headers | provider.kept_headers
    absent = sorted(name for name in read if not came.get(name))
    others = unread(provider, came)[:MOST_NAMES]
    # Two names may be wrong at once: that of the signature, and that of its time.
    for count in (1, 2):
        for missing, found in product(combinations(absent, count), permutations(others, count)):
            values = {name: came[other] for name, other in zip(missing, found, strict=True)}
            pairs = list(zip(missing, found, strict=True))
            cause = RejectionCause(
                "header-name",
                "; ".join(
                    f"no {name} was received: its value is in {other}" for name, other in pairs
                ),
                "in the source's table, write "
                + " and ".join(f"{other} in place of {name}" for name, other in pairs)
                + "; or keep the provider's header names in the proxy",
            )
            changed = replace(trial.delivery, headers={**came, **values})
            yield trial.without(cause, delivery=changed)


def _name(name: str) -> str:
    return name.lower().replace("_", "-").removeprefix("http-")


def _values(value: str) -> Iterator[tuple[str, str]]:
    yield "is in quotes or between spaces", value.strip().strip("\"'")
    yield "was changed to capitals", value.lower()
    yield "was percent-encoded", unquote(value)
    yield "came twice", re.split(r",\s*", value)[0]
    for prefix in PREFIXES:
        yield f"lacks `{prefix}` before the signature", prefix + value


def addresses(trial: Trial) -> Iterator[Trial]:
    """Tries other URLs that the provider may have signed."""
    here = trial.delivery
    base = str(trial.spec.settings.get("url", ""))
    known = urlsplit(base or f"https://{here.headers.get('host', '')}{here.path}")
    bare = known.netloc.partition(":")[0]
    forwarded = [here.headers[name] for name in FORWARDED if here.headers.get(name)]
    hosts = dict.fromkeys((known.netloc, here.headers.get("host", ""), *forwarded, bare))
    ports = [f"{host}:{port}" for host in (bare, *forwarded) for port in (443, 80)]
    prefix = here.headers.get("x-forwarded-prefix", "")
    paths = dict.fromkeys(
        path
        for one in (known.path, here.path, prefix + here.path)
        for path in (one, one.rstrip("/"), one.rstrip("/") + "/")
    )
    queries = dict.fromkeys((here.query, ""))
    for scheme, host, path, query in product(
        (known.scheme, "https", "http"), (*hosts, *ports), paths, queries
    ):
        yield _addressed(trial, f"{scheme}://{host}{path}", query)


def registered(url: str) -> Hypothesis:
    """Returns the hypothesis that the provider signed this URL."""

    def suspect(trial: Trial) -> Iterator[Trial]:
        base, _, query = url.partition("?")
        yield _addressed(trial, base, query or trial.delivery.query)

    return suspect


def _addressed(trial: Trial, url: str, query: str) -> Trial:
    parts = urlsplit(url)
    there = replace(
        trial.delivery,
        path=parts.path or "/",
        query=query,
        headers={**trial.delivery.headers, "host": parts.netloc},
    )
    shown = f"{url}?…" if query else url
    takes = "url" in settings_of(trial.spec)
    remedy = f'url = "{url}" in the source\'s table' if takes else "keep host and path in the proxy"
    words = f"a proxy or a domain changed the URL: the provider signed {shown}"
    settings = {**trial.spec.settings, "url": url} if takes else trial.spec.settings
    cause = RejectionCause("url-changed", words, remedy)
    return trial.without(cause, spec=replace(trial.spec, settings=settings), delivery=there)
