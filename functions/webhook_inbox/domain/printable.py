"""Shows untrusted text so that every character is visible.

A control sequence can rewrite a terminal, or set its clipboard (OSC 52); a bidirectional or
zero-width character makes one id or amount look like another. Each is shown as an escape.
"""

import re
from typing import Final

# Fillers, joiners and variation selectors, which `isprintable` accepts and no display shows.
_INVISIBLE: Final = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0"
    "\U000e0100-\U000e01ef]"
)


def printable(value: object) -> str:
    """Returns the value as one line in which every character shows."""
    return "".join(c if _shows(c) else _escape(c) for c in str(value))


def counted(count: int, thing: str, things: str = "") -> str:
    """Returns `1 run`, `2 runs`."""
    return f"{count} {thing if count == 1 else things or thing + 's'}"


def cut(text: str, limit: int) -> str:
    """Returns a text of at most `limit` characters, the last one `…` where it was longer."""
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


def _shows(character: str) -> bool:
    return character.isprintable() and not _INVISIBLE.match(character)


def _escape(character: str) -> str:
    if character.isprintable():
        return character.encode("unicode_escape").decode()
    return repr(character)[1:-1]
