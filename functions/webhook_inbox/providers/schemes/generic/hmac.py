"""The HMAC scheme that the tables of a declared source describe.

The configuration validates the form of the tables; this module rejects combinations that conflict.
"""

from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any, Final

from webhook_inbox.domain.errors import ConfigurationError
from webhook_inbox.domain.timestamps import duration
from webhook_inbox.providers.schemes.generic import settings
from webhook_inbox.providers.schemes.generic.locations import names_of, place
from webhook_inbox.providers.schemes.signatures import keys
from webhook_inbox.providers.schemes.signatures.encodings import ENCODINGS
from webhook_inbox.providers.schemes.signatures.header_formats import (
    Layout,
    Pairs,
    Several,
    VersionedSignatures,
    Whole,
)
from webhook_inbox.providers.schemes.signatures.hmac import Hmac, PlainHash
from webhook_inbox.providers.schemes.signatures.signed_content import FREE, URLS, Template
from webhook_inbox.providers.schemes.signatures.tolerance import (
    Clockwork,
    Window,
    iso,
    milliseconds,
    seconds,
)

Tables = Mapping[str, Any]

CLOCKWORKS: Final[Mapping[str, Clockwork]] = {
    "seconds": seconds,
    "milliseconds": milliseconds,
    "iso": iso,
}
NEVER: Final = "none"
# The fields that contain the entire query.
QUERIES: Final = URLS | {"query", "sorted_query"}
# The numbers that a `*` at the end of a header name is replaced by.
NUMBERS: Final = range(1, 101)


def scheme(tables: Tables) -> Hmac:
    """Returns the scheme; raises ConfigurationError if tables conflict."""
    signature, signs = tables["signature"], templates(tables)
    where = place(signature)
    in_headers = where is not None and where.kind == "header"
    beside = "entry" in tables.get("timestamp", {})
    kind = PlainHash if signature.get("mac", "hmac") == "hash" else Hmac
    return kind(
        headers=_numbered(where.names) if where and in_headers else (),
        # The signatures of all headers count, unless each has its own time.
        every=not beside,
        find=None if where is None or in_headers else where.read,
        layout=_layout(signature, tables.get("timestamp", {})),
        signs=signs,
        algorithm=signature.get("algorithm", "sha256"),
        encoding=ENCODINGS[signature.get("encoding", "hex")],
        key=keys.of_part("secret", keys.READERS[signature.get("key", "text")]),
        window=_window(tables),
        ids=_ids(tables) if any("id" in each for each in signs) else (),
        url=settings.public_url(tables),
    )


def templates(tables: Tables) -> tuple[Template, ...]:
    """Returns the templates of the signed content; raises ConfigurationError."""
    signature = tables["signature"]
    texts = signature.get("signs", "{body}")
    partial = bool(signature.get("partial", False))
    loose = partial or "digest" in tables
    try:
        texts = [texts] if isinstance(texts, str) else texts
        parsed = tuple(Template.parse(text, without_body=loose) for text in texts)
        signs = tuple(replace(each, closed=_closed(each, tables)) for each in parsed)
    except ConfigurationError as error:
        raise ConfigurationError(f"signature.signs: {error}") from error
    _check_body(signature, signs)
    _check_time(tables, signs)
    _check_batch(tables, signs)
    if any("id" in each for each in signs) and not _ids(tables):
        raise ConfigurationError("event_id.header: missing; name the header of {id}")
    return signs


def _check_body(signature: Tables, signs: tuple[Template, ...]) -> None:
    inside = next((kind for kind in ("json", "form") if kind in signature), None)
    if inside and any("body" in each or "form" in each for each in signs):
        raise ConfigurationError(
            f"signature.{inside}: a signature in the body cannot cover the body; name the fields"
            " that are signed in signature.signs, and set partial = true"
        )
    if "query" in signature and any(not QUERIES.isdisjoint(each.fields) for each in signs):
        raise ConfigurationError(
            "signature.query: a signature in the query cannot cover the query; use {address}"
        )
    if signature.get("each") and "json" not in signature:
        raise ConfigurationError(
            "signature.each: each event can have a signature only in JSON; give signature.json"
        )


def _check_time(tables: Tables, signs: tuple[Template, ...]) -> None:
    beside = {"timestamp" in each for each in signs}
    if len(beside) > 1:
        raise ConfigurationError(
            "signature.signs: {timestamp} is in some templates only; put it into all, or into none"
        )
    if "timestamp" not in tables:
        if beside == {True}:
            raise ConfigurationError("timestamp: missing; name the header of {timestamp}")
    elif beside == {False} and not all(_dates(each, tables) for each in signs):
        raise ConfigurationError(
            "timestamp: not signed, so it proves nothing; add {timestamp} to signature.signs,"
            " or remove it"
        )


def _check_batch(tables: Tables, signs: tuple[Template, ...]) -> None:
    event_id, each = tables["event_id"], tables["signature"].get("each")
    if each and "batch" not in tables:
        raise ConfigurationError("batch: missing; say where the list of events is")
    if "batch" in tables and event_id.keys().isdisjoint({"json", "body"}):
        raise ConfigurationError(
            "event_id: the events of a batch share its headers; give { json = … }, { body = … }"
        )
    if not each:
        return
    for names in _id_fields(tables) or [{""}]:
        if not all(names & set(each.fields) for each in signs):
            raise ConfigurationError(
                "event_id: not signed, so one event could have many ids; give"
                " { json = … } of fields that signature.signs names"
            )
        if len(signs) > 1 or not all(map(signs[0].pins, names & set(signs[0].fields))):
            raise ConfigurationError(
                "event_id: its fields have no certain ends in signature.signs, so one signature"
                " could fit several ids; give one template with separators beside them"
            )


def _closed(template: Template, tables: Tables) -> frozenset[str]:
    """Returns the fields that must not contain their separators.

    Where only a part of the body is signed, other fields than the id may: Adyen's references do.
    """
    if not tables["signature"].get("partial"):
        return frozenset(template.fields) - FREE
    if not tables["signature"].get("each"):
        return frozenset()
    return frozenset(template.fields) & frozenset().union(*_id_fields(tables))


def _id_fields(tables: Tables) -> list[set[str]]:
    """Returns the possible template fields of each part of the event id."""
    paths = tables["event_id"].get("json", [])
    listed = [paths] if isinstance(paths, str) else paths
    return [{f"json:{path}", f"json?:{path}"} for path in listed]


def _dates(template: Template, tables: Tables) -> bool:
    """Returns whether a template covers the time inside another field."""
    where = place(tables["timestamp"])
    if where is None:
        return False
    name = where.names[0]
    covering = {
        "header": {f"header:{name}", *(f for f in template.fields if f.startswith("headers:"))},
        "json": {"body", f"json:{name}"},
        "form": {"body", "form", f"form:{name}"},
        "query": QUERIES,
    }
    return not covering[where.kind].isdisjoint(template.fields)


def _ids(tables: Tables) -> tuple[str, ...]:
    header = tables["event_id"].get("header")
    return names_of(header) if header else ()


def _numbered(names: tuple[str, ...]) -> tuple[str, ...]:
    listed = [
        [f"{name[:-1]}{number}" for number in NUMBERS] if name.endswith("*") else [name]
        for name in names
    ]
    return tuple(name for several in listed for name in several)


def _layout(signature: Tables, timestamp: Tables) -> Layout:
    entry, stamp = signature.get("entry", ""), timestamp.get("entry", "")
    prefix, mark = signature.get("prefix", ""), signature.get("mark", "=")
    separator = signature.get("separator", "," if entry else "")
    if prefix and separator:
        raise ConfigurationError(
            "signature.prefix: does not go with a list; name its entries by signature.entry"
        )
    if stamp and (not entry or mark != "="):
        raise ConfigurationError(
            'timestamp.entry: the time is beside signatures like "t=…,v1=…" only; name theirs by'
            " signature.entry, or give timestamp.header"
        )
    if stamp:
        return Pairs(signature=entry, timestamp=stamp, separator=separator)
    if entry:
        return VersionedSignatures(entry, separator=separator, mark=mark)
    return Several(separator) if separator else Whole(prefix)


def _window(tables: Tables) -> Window | None:
    table = tables.get("timestamp")
    if table is None:
        return None
    where = place(table)
    in_header = where is not None and where.kind == "header"
    return Window(
        headers=where.names if where and in_header else (),
        find=None if where is None or in_header else where.read,
        clockwork=CLOCKWORKS[table.get("format", "seconds")],
        tolerance=_span(table.get("tolerance", "5m")),
        ahead=_span(table["ahead"]) or timedelta(0) if "ahead" in table else None,
    )


def _span(text: str) -> timedelta | None:
    return None if text == NEVER else duration(text)
