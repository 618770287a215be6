"""Shows text of providers, callers and exceptions, which may attack the terminal or its reader.

A control sequence can rewrite the screen or set the clipboard (OSC 52); a bidirectional or
zero-width character makes one id look like another. Each is shown as an escape.
"""

import re
from shlex import quote
from typing import Final

# Fillers, joiners and variation selectors, which `isprintable` accepts and no terminal shows.
_INVISIBLE: Final = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0"
    "\U000e0100-\U000e01ef]"
)


def printable(value: object) -> str:
    """Returns the value as one line in which every character shows."""
    return "".join(c if _shows(c) else _escape(c) for c in str(value))


def printable_lines(text: str) -> str:
    """Returns a text in which every character shows, with its line breaks and tabs."""
    parts = re.split(r"(\r?\n|\t)", text)
    # Every second part is a separator.
    return "".join(printable(part) if n % 2 == 0 else part[-1] for n, part in enumerate(parts))


def quoted(text: str) -> str:
    r"""Returns a shell's argument that is this text, whatever it contains, and shows whole.

    `$'\x1b'` is an escape to bash, zsh and ksh.
    """
    if printable(text) == text:
        return quote(text)
    return "$'" + "".join(_shell_escape(c) for c in text) + "'"


def _shows(character: str) -> bool:
    return character.isprintable() and not _INVISIBLE.match(character)


def _escape(character: str) -> str:
    if character.isprintable():
        return character.encode("unicode_escape").decode()
    return repr(character)[1:-1]


def _shell_escape(character: str) -> str:
    if character in "\\'":
        return f"\\{character}"
    if _shows(character):
        return character
    code = ord(character)
    # `\x` is a byte to the shell, `\u` a character.
    if code < 0x80:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
