"""Shows text of providers, callers and exceptions, which may attack the terminal or its reader."""

import re
from shlex import quote
from typing import Final

from webhook_inbox.domain.printable import printable

__all__: Final = ["printable", "printable_lines", "quoted"]


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


def _shell_escape(character: str) -> str:
    if character in "\\'":
        return f"\\{character}"
    if printable(character) == character:
        return character
    code = ord(character)
    # `\x` is a byte to the shell, `\u` a character.
    if code < 0x80:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
