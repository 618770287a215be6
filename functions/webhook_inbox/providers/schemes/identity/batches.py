"""Deliveries that hold many events.

Each event is cut out of the JSON text as it is written. Parsing and writing it again would change
it: 1.10 becomes 1.1, long fractions lose digits, of two members with one name only the last stays.
"""

import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from webhook_inbox.domain.errors import Reason, Rejected
from webhook_inbox.domain.json_path import at, document
from webhook_inbox.domain.model import Delivery

# Ten times the largest batch of any provider.
LIMIT: Final = 10_000

Parts = Callable[[Delivery], Sequence[Delivery] | None]


def elements(delivery: Delivery, path: str = "") -> list[object]:
    """Returns the elements of the list at a path of the body's JSON, the body itself at "".

    Raises:
        Rejected: there is none, it is empty, or it is too long (malformed).
    """
    whole = document(delivery)
    found = at(whole, path) if path else whole
    if not isinstance(found, list) or not found:
        raise Rejected(Reason.MALFORMED, f"no list of events at {path or 'the top'} of the body")
    if len(found) > LIMIT:
        raise Rejected(Reason.MALFORMED, f"more than {LIMIT} events in one delivery")
    return found


def split_at(path: str = "", *, inside: str = "", content_type: str = "") -> Parts:
    """Splits a delivery into one for each element of a list.

    The body of each is its element as written: numbers to the last digit, blanks,
    escapes, the order of names. All parts have the headers, none has the text around the list.

    Args:
        path: the dotted path of the list.
        inside: the dotted path of the event in an element.
        content_type: the content type of a part, if it differs from the batch's.
    """

    def split(delivery: Delivery) -> Sequence[Delivery]:
        found = elements(delivery, path)
        headers = delivery.headers
        if content_type:
            headers = {**headers, "content-type": content_type}
        try:
            bodies = list(_bodies(delivery.body, path, inside))
        except RecursionError as error:
            raise Rejected(Reason.MALFORMED, "the batch is nested too deeply") from error
        return [
            replace(delivery, headers=headers, body=body)
            for body, _ in zip(bodies, found, strict=True)
        ]

    return split


def _bodies(body: bytes, path: str, inside: str) -> Iterator[bytes]:
    whole = excerpt(body).at(path)
    for element in whole.elements() if whole else ():
        event = element.at(inside)
        if event is None or not event.is_object:
            raise Rejected(Reason.MALFORMED, "an event of the batch is not an object")
        yield event.raw


def _without_value(_: str) -> None:
    """Skips a number: only names and positions are read, and a long number takes long."""


_DECODER: Final = json.JSONDecoder(parse_int=_without_value, parse_float=_without_value)
_BLANK: Final = re.compile(r"[ \t\n\r]*")


@dataclass(frozen=True, slots=True)
class Excerpt:
    """A value in a text that is valid JSON, with its position."""

    text: str
    start: int
    end: int

    @property
    def is_object(self) -> bool:
        """True if the value is an object."""
        return self.text[self.start] == "{"

    @property
    def raw(self) -> bytes:
        """The value as written, in UTF-8; byte for byte if the text was UTF-8."""
        return self.text[self.start : self.end].encode(errors="surrogatepass")

    def at(self, path: str) -> "Excerpt | None":
        """Returns the value at a dotted path, or None; of duplicate members the last."""
        found: Excerpt | None = self
        for name in path.split(".") if path else ():
            found = dict(found.members()).get(name) if found else None
        return found

    def elements(self) -> Iterator["Excerpt"]:
        """Yields the elements of a list; nothing for another value."""
        place = _past_blanks(self.text, self.start + 1)
        while self.text[self.start] == "[" and self.text[place] != "]":
            element = _value(self.text, place)
            yield element
            place = _past_joint(self.text, element.end)

    def members(self) -> Iterator[tuple[str, "Excerpt"]]:
        """Yields the members of an object; nothing for another value."""
        place = _past_blanks(self.text, self.start + 1)
        while self.is_object and self.text[place] != "}":
            name, end = _DECODER.raw_decode(self.text, place)
            colon = _past_blanks(self.text, end)
            member = _value(self.text, _past_blanks(self.text, colon + 1))
            yield name, member
            place = _past_joint(self.text, member.end)


def excerpt(body: bytes) -> Excerpt:
    """Returns the entire body, which must be JSON in one of its encodings."""
    text = body.decode(json.detect_encoding(body), errors="surrogatepass")
    return Excerpt(text, _past_blanks(text, 0), len(text))


def _value(text: str, start: int) -> Excerpt:
    return Excerpt(text, start, _DECODER.raw_decode(text, start)[1])


def _past_joint(text: str, place: int) -> int:
    """Returns where the next part begins after a comma, or where the bracket closes."""
    place = _past_blanks(text, place)
    return _past_blanks(text, place + 1) if text[place] == "," else place


def _past_blanks(text: str, place: int) -> int:
    blank = _BLANK.match(text, place)
    return place if blank is None else blank.end()
