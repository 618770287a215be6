"""The event id, type and time of a verified delivery."""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from hashlib import sha256
from typing import Final
from urllib.parse import urlencode

from webhook_inbox.domain.errors import Reason, Rejected
from webhook_inbox.domain.json_edges import is_absent, leading, trailing
from webhook_inbox.domain.json_path import at, form, parse, query_field
from webhook_inbox.domain.model import Delivery
from webhook_inbox.domain.provider import Identity
from webhook_inbox.domain.timestamps import from_ms, from_seconds
from webhook_inbox.providers.schemes.http import first

UNKNOWN: Final = "unknown"
TYPE_LIMIT: Final = 256
COUNT_DIGITS: Final = 9
LARGEST: Final = 10**100
# Bytes; a smaller body is parsed in less than 0.1 ms.
LARGE: Final = 16 * 1024
# Epoch seconds beyond the year 5138 are milliseconds.
LAST_SECOND: Final = 10**11

# Epoch seconds or milliseconds as text; no date of ISO 8601 has as many digits in a row.
_EPOCH: Final = re.compile(r"[0-9]{10}([0-9]{3})?", re.ASCII)
# Control characters corrupt logs and terminals; stores reject lone surrogates, which JSON allows.
_UNFIT: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff]")


class Reading:
    """A verified delivery whose body is parsed on first use, at most once."""

    def __init__(self, delivery: Delivery) -> None:
        self.delivery = delivery
        self._looked = self._unreadable = False

    @cached_property
    def document(self) -> object:
        """The body as JSON; None if it is not JSON."""
        try:
            return parse(self.delivery.body)
        except ValueError:
            self._unreadable = True
            return None

    def unreadable(self) -> bool:
        """Tells whether the body was read as JSON and is none."""
        # A look at its edges does not tell.
        if self._looked:
            _ = self.document
        return self._unreadable

    def member(self, name: str) -> object:
        """Returns a member of the body's JSON object, or None; a large body is parsed last."""
        body = self.delivery.body
        if len(body) >= LARGE and "document" not in vars(self):
            edge = leading(body, name)
            absent = edge is None and is_absent(body, name)
            if edge is None and not absent:
                edge = trailing(body, name)
            if edge is not None or absent:
                self._looked = True
                return edge and edge.value
        return at(self.document, name)

    @cached_property
    def form(self) -> dict[str, str]:
        """The first value of each form field; empty if the body is not a form."""
        # Reversed, so that of several values the first one stays.
        return {name: value for name, value in reversed(form(self.delivery)) if value}

    @cached_property
    def payload(self) -> object:
        """The JSON in a form's `payload` field, or None."""
        try:
            return parse(self.form.get("payload", "null"))
        except ValueError:
            return None


Finder = Callable[[Reading], object]
# Joins the parts of a composite key; it is escaped inside a part, so that keys stay distinct.
JOINT: Final = "|"


@dataclass(frozen=True, slots=True)
class InHeader:
    """Finds the first of these headers that is present."""

    names: tuple[str, ...]

    def __call__(self, reading: Reading) -> object:
        """Returns the header's value, or None."""
        return first(reading.delivery.headers, self.names)


def header(*names: str) -> InHeader:
    """Finds the first of these headers that is present."""
    return InHeader(names)


@dataclass(frozen=True, slots=True)
class Joined:
    """Finds a composite key; None unless each part is found."""

    finders: tuple[Finder, ...]

    def __call__(self, reading: Reading) -> object:
        """Returns the key, or None."""
        parts = [_plain(finder(reading)) for finder in self.finders]
        if not all(parts):
            return None
        return JOINT.join(part.replace("\\", "\\\\").replace(JOINT, "\\" + JOINT) for part in parts)


def joined(*finders: Finder) -> Joined:
    """Finds a composite key; None unless each part is found."""
    return Joined(finders)


@dataclass(frozen=True, slots=True)
class Dotted:
    """Finds a type of several parts, joined by dots; absent parts are omitted."""

    finders: tuple[Finder, ...]

    def __call__(self, reading: Reading) -> object:
        """Returns the type, or ""."""
        return ".".join(filter(None, (_plain(f(reading)) for f in self.finders)))


def dotted(*finders: Finder) -> Dotted:
    """Finds a type of several parts, joined by dots; absent parts are omitted."""
    return Dotted(finders)


def headers_in(finders: Iterable[Finder]) -> frozenset[str]:
    """Returns the names of the headers that finders read."""
    found: set[str] = set()
    for finder in finders:
        if isinstance(finder, InHeader):
            found.update(finder.names)
        elif isinstance(finder, Joined | Dotted):
            found |= headers_in(finder.finders)
    return frozenset(found)


def in_form(name: str) -> Finder:
    """Finds a field of the body as a form."""
    return lambda reading: reading.form.get(name)


def in_query(name: str) -> Finder:
    """Finds a field of the query."""
    return lambda reading: query_field(reading.delivery, name)


def in_json(path: str) -> Finder:
    """Finds a value in the body's JSON by the names of the objects around it: `event.type`."""
    if "." not in path:
        return lambda reading: reading.member(path)
    return lambda reading: at(reading.document, path)


def utc(finder: Finder) -> Finder:
    """Finds a time, as UTC if it has no offset."""

    def find(reading: Reading) -> object:
        found = finder(reading)
        return f"{found}Z" if isinstance(found, str) and instant(found) is None else found

    return find


def repeats(attempt: Finder) -> Finder:
    """Finds the number of retries: the attempt's number, which begins at 1, minus one."""

    def find(reading: Reading) -> object:
        number = count(attempt(reading))
        return None if number is None else max(number - 1, 0)

    return find


def hash_of(content: Callable[[Delivery], bytes]) -> Finder:
    """Identifies a delivery by its content, for providers without ids."""
    return lambda reading: "sha256:" + sha256(content(reading.delivery)).hexdigest()


def content_hash(reading: Reading) -> object:
    """Identifies a body by its content, for providers without ids: equal bodies are one event."""
    return "sha256:" + sha256(reading.delivery.body).hexdigest()


def canonical_form(delivery: Delivery) -> bytes:
    """Returns a form's fields sorted, each once, or a body that is not a form as it was sent.

    A scheme that signs sorted fields signs them in any order and encoding.
    """
    pairs = sorted({pair for pair in form(delivery) if any(pair)})
    return urlencode(pairs).encode() if pairs else delivery.body


def fixed(value: str) -> Finder:
    """Finds the same value in every delivery."""
    return lambda _: value


@dataclass(frozen=True, slots=True, kw_only=True)
class Naming:
    """The finders of id, type and time; the first that finds a value counts."""

    id: tuple[Finder, ...]
    type: tuple[Finder, ...]
    occurred_at: tuple[Finder, ...] = ()
    retry: tuple[Finder, ...] = ()
    retry_reason: tuple[Finder, ...] = ()

    def identify(self, delivery: Delivery) -> Identity:
        """Returns the event's identity.

        Raises:
            Rejected: the id is missing or cannot be stored; no other error is raised.
        """
        reading = Reading(delivery)
        found = _find(self.id, reading)
        if found is None:
            reason = Reason.MALFORMED if reading.unreadable() else Reason.MISSING_EVENT_ID
            raise Rejected(reason, "the delivery has no event id at the provider's location")
        return Identity(
            event_id=event_id(found),
            type=event_type(_find(self.type, reading)),
            occurred_at=instant(_find(self.occurred_at, reading)),
            retry=count(_find(self.retry, reading)),
            retry_reason=_plain(_find(self.retry_reason, reading))[:TYPE_LIMIT],
        )


def _find(finders: tuple[Finder, ...], reading: Reading) -> object:
    return next((found for f in finders if (found := f(reading)) not in (None, "")), None)


def event_id(value: object) -> str:
    """Returns the id as text; raises Rejected (malformed) if it cannot be an id.

    A float is rejected because two floats can have the same text.
    """
    if isinstance(value, int) and not isinstance(value, bool):
        value = str(value)
    if not isinstance(value, str) or not value.strip() or _UNFIT.search(value):
        raise Rejected(Reason.MALFORMED, "the event id is neither plain text nor a whole number")
    return value


def event_type(value: object) -> str:
    """Returns the type as text; `unknown` if there is none, so that no event is lost."""
    return _plain(value)[:TYPE_LIMIT] or UNKNOWN


def count(value: object) -> int | None:
    """Returns a small number, or None."""
    text = _plain(value)
    return int(text) if text.isascii() and text.isdecimal() and len(text) < COUNT_DIGITS else None


def _plain(value: object) -> str:
    """Returns text that can be stored and printed, else ""."""
    if isinstance(value, int) and not isinstance(value, bool):
        value = _decimal(value)
    if not isinstance(value, str) or not value.strip() or _UNFIT.search(value):
        return ""
    return value


def _decimal(value: int) -> str:
    # str() raises for numbers of more than 4,300 digits.
    return str(value) if abs(value) < LARGEST else ""


def instant(value: object) -> datetime | None:
    """Returns the time from epoch seconds, epoch milliseconds or ISO 8601 text, or None."""
    if isinstance(value, str) and _EPOCH.fullmatch(value):
        value = int(value)
    try:
        if isinstance(value, int) and not isinstance(value, bool):
            return from_ms(value) if abs(value) > LAST_SECOND else from_seconds(value)
        if isinstance(value, str):
            moment = datetime.fromisoformat(value)
            return None if moment.tzinfo is None else moment.astimezone(UTC)
    except (ValueError, OverflowError):
        return None
    return None
