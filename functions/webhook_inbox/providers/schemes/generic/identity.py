"""Event ids and types of a declared source."""

from collections.abc import Callable, Mapping
from typing import Any

from webhook_inbox.domain.errors import ConfigurationError
from webhook_inbox.domain.provider import Sample
from webhook_inbox.providers.schemes.generic.locations import names_of
from webhook_inbox.providers.schemes.identity.event_identity import (
    Finder,
    Naming,
    content_hash,
    fixed,
    header,
    in_form,
    in_json,
    in_query,
    joined,
)

Settings = Mapping[str, Any]
# Sources inside the body: another id means another body.
IN_BODY = frozenset({"json", "form", "body"})


def naming(
    settings: Settings,
    *,
    claim: Callable[[str], Finder] | None = None,
    content: Finder = content_hash,
) -> Naming:
    """Returns the naming that `event_id` and `event_type` declare.

    Args:
        settings: the source's tables.
        content: identifies a delivery by its content.
        claim: makes a finder for a claim of the token, if the scheme has one.

    Raises:
        ConfigurationError: `event_id` is missing.
    """
    if "event_id" not in settings:
        raise ConfigurationError('event_id: missing; say where it is: { header = "…" }')
    id_, type_ = settings["event_id"], settings.get("event_type", {})
    return Naming(id=(_finder(id_, claim, content),), type=(_finder(type_, claim, content),))


def headers_of(settings: Settings, *, besides: frozenset[str] = frozenset()) -> frozenset[str]:
    """Returns the lower-case names of the headers that hold an id or a type.

    Args:
        settings: the source's tables.
        besides: headers that must not be stored.

    Raises:
        ConfigurationError: an id or a type is read from one of `besides`.
    """
    found: set[str] = set()
    for table in ("event_id", "event_type"):
        names = names_of(settings.get(table, {}).get("header", []))
        for name in besides.intersection(names):
            raise ConfigurationError(
                f"{table}.header: {name} holds the sender's credential, which is never stored; name"
                " another header"
            )
        found.update(names)
    return frozenset(found)


def sample_headers(settings: Settings, sample: Sample) -> dict[str, str]:
    """Returns the headers that name a sample."""
    named: dict[str, str] = {}
    for table, value in (("event_id", sample.event_id), ("event_type", sample.type)):
        name = settings.get(table, {}).get("header")
        named |= {names_of(name)[0]: value} if name else {}
    return named


def _finder(table: Settings, claim: Callable[[str], Finder] | None, content: Finder) -> Finder:
    makers: dict[str, Callable[[Any], Finder]] = {
        "header": lambda names: header(*names_of(names)),
        "json": lambda path: (
            in_json(path) if isinstance(path, str) else joined(*map(in_json, path))
        ),
        "form": in_form,
        "query": in_query,
        "body": lambda _: content,
        "value": fixed,
    }
    if claim is not None:
        makers["claim"] = claim
    return next((make(table[key]) for key, make in makers.items() if key in table), fixed(""))
