"""The event id, type and time of a verified delivery."""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum, auto
from functools import cached_property
from hashlib import sha256
from typing import Final
from urllib.parse import urlencode

from webhook_inbox.domain.errors import Reason, Rejected
from webhook_inbox.domain.json_edges import is_absent, leading, trailing
from webhook_inbox.domain.json_path import at, document, form, parse, query_field
from webhook_inbox.domain.model import Delivery, TypeDoubt
from webhook_inbox.domain.provider import Identity
from webhook_inbox.providers.schemes.http import first
from webhook_inbox.providers.schemes.identity.values import (
    TYPE_LIMIT,
    count,
    event_id,
    event_type,
    instant,
    plain,
)

# Bytes; a smaller body is parsed in less than 0.1 ms.
LARGE: Final = 16 * 1024
# Bytes; counting the braces of 1 MB takes as long as verifying it.
COUNTED: Final = 256 * 1024
# A form that begins like JSON is JSON that was cut; in a form these characters are encoded.
_JSON_BEGIN: Final = re.compile(rb'[\s\0\xef\xbb\xbf]*[{\["]')


class Format(Enum):
    """A format of a body."""

    JSON = auto()
    FORM = auto()


class Reading:
    """A delivery whose body is parsed on first use, at most once.

    Attributes:
        searched: the formats that the body was read as, other than at its edges.
        skimmed: whether a large body was searched at its edges only.
        unfit: whether a value of the wrong kind was at the place of a sought one, or above it.
    """

    def __init__(self, delivery: Delivery, *, parsed: bool = False) -> None:
        self.delivery = delivery
        self.searched: set[Format] = set()
        self.skimmed = self.unfit = False
        self._parsed = parsed
        self._looked = self._unreadable = False

    def begin_search(self) -> None:
        """Forgets what earlier searches have shown of the body."""
        self.searched.clear()
        self.skimmed = self.unfit = False

    @property
    def document(self) -> object:
        """The body as JSON; None if it is not JSON."""
        self.searched.add(Format.JSON)
        return self._document

    @cached_property
    def _document(self) -> object:
        if not self.delivery.verified:
            found = document(self.delivery)
            self._unreadable = found is None
            return found
        try:
            return parse(self.delivery.body)
        except ValueError:
            self._unreadable = True
            return None

    def unreadable(self) -> bool:
        """Tells whether the body was read as JSON and is none."""
        # A look at its edges does not tell.
        if self._looked:
            _ = self._document
        return self._unreadable

    def is_legible(self, *, found: bool) -> bool:
        """Tells whether the body, if it was searched, is an object, a list or a form.

        Where nothing was found, it has to be of a format that it was searched as. A large body that
        was searched at its edges is parsed only if it may be damaged: to parse it takes longer than
        to store it. An empty body contradicts no type that was found beside it.
        """
        if found and not self.delivery.body:
            return True
        if self.skimmed and not (found and self._is_closed()):
            self.searched.add(Format.JSON)
        if not self.searched:
            return True
        expected = set(Format) if found else self.searched
        if Format.JSON in expected and isinstance(self._document, dict | list):
            return True
        is_form = bool(self._form) and _JSON_BEGIN.match(self.delivery.body) is None
        return Format.FORM in expected and is_form

    def _is_closed(self) -> bool:
        """Tells whether the body is an object that was not cut, as far as its braces show.

        Above `COUNTED`, one that was cut right behind a brace counts as whole.
        """
        body = self.delivery.body
        last = body[-LARGE:].rstrip(b" \t\r\n")[-1:]
        if body[:1] + last != b"{}":
            return False
        if len(body) <= COUNTED and body.count(b"{") != body.count(b"}"):
            return False
        try:
            body.decode()
        except UnicodeDecodeError:
            return False
        return True

    def at(self, path: str) -> object:
        """Returns the value at a dotted path in the body's JSON, or None."""
        found = at(self.document, path)
        if found is None and _is_blocked(self.document, path):
            self.unfit = True
        return found

    def member(self, name: str) -> object:
        """Returns a member of the body's JSON object, or None; a large body is parsed last."""
        body = self.delivery.body
        if len(body) >= LARGE and not self._parsed and "_document" not in vars(self):
            edge = leading(body, name)
            absent = edge is None and body[:1] == b"{" and is_absent(body, name)
            if edge is None and not absent:
                edge = trailing(body, name)
            if edge is not None or absent:
                self._looked = self.skimmed = True
                return edge and edge.value
        return self.at(name)

    @property
    def form(self) -> dict[str, str]:
        """The first value of each form field; empty if the body is not a form."""
        self.searched.add(Format.FORM)
        return self._form

    @cached_property
    def _form(self) -> dict[str, str]:
        # Reversed, so that of several values the first one stays.
        return {name: value for name, value in reversed(form(self.delivery)) if value}

    @property
    def payload(self) -> object:
        """The JSON in a form's `payload` field, or None."""
        text = self.form.get("payload", "null")
        if self._payload is None and text != "null":
            self.unfit = True
        return self._payload

    @cached_property
    def _payload(self) -> object:
        try:
            return parse(self._form.get("payload", "null"))
        except ValueError:
            return None


def _is_blocked(document: object, path: str) -> bool:
    """Tells whether a value on the way to a path is neither an object nor an indexed list."""
    for name in path.split("."):
        if document is None:
            break
        if not isinstance(document, dict | list) or (
            isinstance(document, list) and not name.isdecimal()
        ):
            return True
        document = at(document, name)
    return False


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
        parts = [_fit(finder(reading), reading) for finder in self.finders]
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
        return ".".join(filter(None, (_fit(f(reading), reading) for f in self.finders)))


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
    return lambda reading: reading.at(path)


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
    """The finders of id, type and time; the first that finds a value counts.

    Attributes:
        repeated: the finder of the signed value that an unsigned header repeats, by its lower-case
            name. A delivery is rejected if such a header has another value.
        contradicted_type: finds the type of the signed body if an unsigned header contradicts it,
            else "", where the provider must not be refused.
    """

    id: tuple[Finder, ...]
    type: tuple[Finder, ...]
    occurred_at: tuple[Finder, ...] = ()
    retry: tuple[Finder, ...] = ()
    retry_reason: tuple[Finder, ...] = ()
    repeated: Mapping[str, Finder] = field(default_factory=dict)
    contradicted_type: Callable[[Reading], str] = lambda _: ""

    def identify(self, delivery: Delivery, *, parsed: bool = False) -> Identity:
        """Returns the event's identity; see `Identify`.

        Raises:
            Rejected: the id is missing or cannot be stored, or a header that repeats a signed
                value has another one; no other error is raised.
        """
        reading = Reading(delivery, parsed=parsed)
        found = _find(self.id, reading)
        if found is None:
            reason = Reason.MALFORMED if reading.unreadable() else Reason.MISSING_EVENT_ID
            raise Rejected(reason, "the delivery has no event id at the provider's location")
        self._check_repeated(reading)
        type_, doubt = self._find_type(reading)
        skimmed = reading.skimmed  # before times and counts are sought
        return Identity(
            event_id=event_id(found),
            type=type_,
            doubt=doubt,
            skimmed=skimmed,
            occurred_at=instant(_find(self.occurred_at, reading)),
            retry=count(_find(self.retry, reading)),
            retry_reason=plain(_find(self.retry_reason, reading))[:TYPE_LIMIT],
        )

    def _check_repeated(self, reading: Reading) -> None:
        for name, finder in self.repeated.items():
            sent = reading.delivery.headers.get(name)
            if sent is not None and sent != plain(finder(reading)):
                raise Rejected(Reason.MALFORMED, f"{name} contradicts the signed body")

    def _find_type(self, reading: Reading) -> tuple[str, TypeDoubt | None]:
        reading.begin_search()
        text = _fit(_find(self.type, reading), reading)
        signed = self.contradicted_type(reading)
        doubt = TypeDoubt.CONTRADICTED if signed else None
        if reading.unfit or not reading.is_legible(found=bool(text)):
            doubt = TypeDoubt.UNREADABLE
        return event_type(signed or text), doubt


def _find(finders: tuple[Finder, ...], reading: Reading) -> object:
    return next((found for f in finders if (found := f(reading)) not in (None, "")), None)


def _fit(value: object, reading: Reading) -> str:
    """Returns a part of a type as text; notes a value that is none."""
    text = plain(value)
    reading.unfit = reading.unfit or (not text and value not in (None, ""))
    return text
