"""Parts of a JSON text, cut out as they are written.

A value that is parsed and written again is another text: 1.10 becomes 1.1, of 20 digits after the
point some are lost, of two members of one name the last alone is left.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

_DECODER: Final = json.JSONDecoder()
_BLANK: Final = re.compile(r"[ \t\n\r]*")


@dataclass(frozen=True, slots=True)
class Excerpt:
    """A value of a text that is known to be JSON, and where it stands there."""

    text: str
    start: int
    end: int

    @property
    def is_object(self) -> bool:
        """Whether the value is an object."""
        return self.text[self.start] == "{"

    @property
    def raw(self) -> bytes:
        """The value as it is written, in UTF-8; byte for byte where the whole came in UTF-8."""
        return self.text[self.start : self.end].encode(errors="surrogatepass")

    def at(self, path: str) -> "Excerpt | None":
        """Returns the value that a dotted path of names leads to, None where there is none.

        Of several members of one name it is the last, as for a parser.
        """
        found: Excerpt | None = self
        for name in path.split(".") if path else ():
            found = dict(found.members()).get(name) if found else None
        return found

    def elements(self) -> Iterator["Excerpt"]:
        """Yields the elements of a list; where the value is none, nothing."""
        place = _past_blanks(self.text, self.start + 1)
        while self.text[self.start] == "[" and self.text[place] != "]":
            element = _value(self.text, place)
            yield element
            place = _past_joint(self.text, element.end)

    def members(self) -> Iterator[tuple[str, "Excerpt"]]:
        """Yields the members of an object; where the value is none, nothing."""
        place = _past_blanks(self.text, self.start + 1)
        while self.is_object and self.text[place] != "}":
            name, end = _DECODER.raw_decode(self.text, place)
            colon = _past_blanks(self.text, end)
            member = _value(self.text, _past_blanks(self.text, colon + 1))
            yield name, member
            place = _past_joint(self.text, member.end)


def excerpt(body: bytes) -> Excerpt:
    """Returns the whole of a body, which has to be JSON in an encoding that JSON may have."""
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
