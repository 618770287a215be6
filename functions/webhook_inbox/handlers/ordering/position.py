"""Reads an event's ordering key and its version or number from its body."""

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from enum import StrEnum
from typing import Any, Final

from webhook_inbox.domain.error_text import shorten
from webhook_inbox.domain.errors import Permanent
from webhook_inbox.domain.json_path import at
from webhook_inbox.handlers.ordering.declaration import NUMBERS

VERSION_LIMIT: Final = 256
_NUMBER: Final = re.compile(r"[+-]?[0-9]+(\.[0-9]+)?", re.ASCII)
_WHOLE: Final = re.compile(r"[0-9]{1,18}", re.ASCII)


class PositionKind(StrEnum):
    """How versions are compared."""

    NUMBER = "number"  # by value: 9 is older than 10, and 1.50 is 1.5
    TIME = "time"  # as instants, whatever their zones
    TEXT = "text"  # by code points


@dataclass(frozen=True, slots=True)
class Version:
    """A version; `text` is displayed and stored."""

    text: str
    kind: PositionKind
    value: Any

    @classmethod
    def read(cls, text: str) -> "Version":
        """Reads a version; its kind depends on the text only."""
        if _NUMBER.fullmatch(text):
            return cls(text, PositionKind.NUMBER, Decimal(text))
        try:
            moment = datetime.fromisoformat(text)
        except ValueError:
            return cls(text, PositionKind.TEXT, text)
        zoned = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
        return cls(text, PositionKind.TIME, zoned)

    def is_older(self, other: "Version") -> bool:
        """Returns whether it is older; raises Permanent if the two are of different kinds."""
        if self.kind is not other.kind:
            raise Permanent(
                f"version {self.text!r} is a {self.kind}, and {other.text!r}, which came before,"
                f" a {other.kind}: one ordering key's versions are of one kind"
            )
        return bool(self.value < other.value)


def ordering_key_at(body: Any, path: str, asker: str) -> str:
    """Returns the ordering key in a body: text, or a whole number as text.

    Raises:
        Permanent: there is none; the message names the path and the asker.
    """
    found = at(body, path)
    if type(found) is int:
        return str(found)
    if not isinstance(found, str) or not found:
        raise _unfit(asker, "ordering key", path, found, "text or a whole number")
    return _storable(found, asker, "ordering key", path)


def version_at(body: Any, path: str, asker: str) -> Version:
    """Returns the version in a body.

    Raises:
        Permanent: there is none; the message names the path and the asker.
    """
    found = at(body, path)
    is_number = isinstance(found, int | float) and not isinstance(found, bool)
    text = _plain(found) if is_number else found
    if not isinstance(text, str) or not 0 < len(text) <= VERSION_LIMIT:
        wanted = f"a number or a text of at most {VERSION_LIMIT} characters"
        raise _unfit(asker, "version", path, found, wanted)
    return Version.read(_storable(text, asker, "version", path))


def number_at(body: Any, path: str, asker: str) -> int:
    """Returns the sequence number in a body.

    Raises:
        Permanent: there is none; the message names the path and the asker.
    """
    found = at(body, path)
    if isinstance(found, str) and _WHOLE.fullmatch(found):
        found = int(found)
    if type(found) is not int or not 0 <= found < NUMBERS:
        raise _unfit(asker, "number", path, found, "a whole number from 0 to 10^18 - 1")
    return found


def _plain(value: object) -> str:
    """Returns a JSON number without an exponent, "" if it is not finite."""
    number = Decimal(repr(value))
    return format(number, "f") if number.is_finite() else ""


def _storable(text: str, asker: str, what: str, path: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError as error:  # JSON can spell lone surrogates
        raise _unfit(asker, what, path, None, "valid text") from error
    return text


def _unfit(asker: str, what: str, path: str, found: object, wanted: str) -> Permanent:
    shown = f" {shorten(str(found), 40)!r}" if isinstance(found, str | int | float) else ""
    there = "none" if found is None else f"{type(found).__name__}{shown}"
    return Permanent(f"{asker} needs the {what} at {path!r}: {wanted}, and there is {there}")
