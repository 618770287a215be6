"""Plain members at the edges of a large JSON object, found without parsing all of it.

To parse a megabyte takes longer than to verify and store it, and identities are at the edges:
`{"id": "evt_1", …, "type": "invoice.paid"}`. For valid JSON the value is the one that a parser
finds, unless a name is repeated in one object. Callers parse where nothing is found.
"""

import json
import re
from typing import Final, NamedTuple

_BLANK: Final = rb"[ \t\r\n]*+"
_SCALAR: Final = rb'(-?[0-9][0-9.eE+-]*+|true|false|null|"[^"\\]*+")'
_BEGIN: Final = re.compile(_BLANK + rb"\{")
_MEMBER: Final = re.compile(_BLANK + rb'"([^"\\]*+)"' + _BLANK + b":" + _BLANK + _SCALAR)
_VALUE: Final = re.compile(_BLANK + b":" + _BLANK + _SCALAR)
_COMMA: Final = re.compile(_BLANK + b",")
_LETTER: Final = re.compile(rb"\\u00[4-7]")
# The bytes behind a value that are parsed to see that it belongs to the outermost object.
TAIL: Final = 4096
# The members that are read from the begin.
FIRST: Final = 20


class Member(NamedTuple):
    """A value, and where it begins and ends in the text."""

    value: object
    start: int
    end: int


def leading(text: bytes, name: str) -> Member | None:
    """Returns a member that only plain ones precede, None where there is none."""
    begin = _BEGIN.match(text)
    wanted = name.encode()
    for _ in range(FIRST if begin else 0):
        found = _MEMBER.match(text, begin.end())  # type: ignore[union-attr]
        if found is None:
            return None
        if found[1] == wanted:
            return _member(text, found.span(2))
        begin = _COMMA.match(text, found.end())
        if begin is None:
            return None
    return None


def trailing(text: bytes, name: str) -> Member | None:
    """Returns a member that at most 4 KB follow, None where there is none.

    The text behind a member of the outermost object is the end of one object.
    """
    written = json.dumps(name).encode()
    place = text.rfind(written)
    found = _VALUE.match(text, place + len(written)) if place >= 0 else None
    # Behind a backslash, the first quote is one of a longer name.
    if found is None or text[place - 1 : place] == b"\\" or len(text) - found.end() > TAIL:
        return None
    try:
        rest = json.loads(b'{"":0' + text[found.end() :])
    except (ValueError, RecursionError):
        return None
    # An escaped name is another way to write this one.
    return None if name in rest else _member(text, found.span(1))


def is_absent(text: bytes, name: str) -> bool:
    """Returns whether no object of a JSON text has a member of this name, an ASCII word."""
    if f'"{name}"'.encode() in text or json.detect_encoding(text) not in {"utf-8", "utf-8-sig"}:
        return False
    # A letter can be written as an escape; most texts without one have no backslash at all.
    return b"\\" not in text or _LETTER.search(text) is None


def _member(text: bytes, span: tuple[int, int]) -> Member | None:
    try:
        return Member(json.loads(text[slice(*span)]), *span)
    except ValueError:
        return None
