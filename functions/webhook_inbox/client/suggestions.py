"""Suggested commands, which can be pasted into the shell."""

import os
import shutil
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from shlex import quote
from typing import Final, Self

from webhook_inbox.client.connection import Selection
from webhook_inbox.domain.printable import printable

NAME: Final = "webhookctl"


class Command(str):
    """A command line; `words` are its quoted words."""

    __slots__ = ("words",)
    words: tuple[str, ...]

    def __new__(cls, words: Iterable[str]) -> Self:
        """Returns the command of these words, which are quoted already."""
        every = tuple(words)
        made = super().__new__(cls, " ".join(every))
        made.words = every
        return made


@dataclass(frozen=True, slots=True)
class Program:
    """The words with which every suggested command begins: the program and the target."""

    words: tuple[str, ...] = (NAME,)

    @classmethod
    def running(cls, called: str | None = None) -> Self:
        """Returns the program that started this process, relative to the working directory."""
        path = Path(called or sys.argv[0])
        if path.name == "__main__.py":
            return cls(("python", "-m", NAME))
        found = shutil.which(NAME)
        on_path = found is not None and path.exists() and Path(found).samefile(path)
        if on_path or path.name != NAME:
            return cls()
        here = Path.cwd()
        absolute = Path(os.path.abspath(path))  # noqa: PTH100 - a link to the program stays one
        return cls((str(absolute.relative_to(here) if here in absolute.parents else path),))

    def on(self, selection: Selection) -> Self:
        """Returns the program with the options that select this target."""
        named = {
            "--stack": selection.stack,
            "--profile": selection.profile,
            "--region": selection.region,
        }
        options = [word for option, value in named.items() if value for word in (option, value)]
        return type(self)((*self.words, *(["--local"] if selection.local else []), *options))

    def command(self, verb: str, *options: str, argument: str | None = None) -> Command:
        """Returns a command line; a shell reads every value as it is given here.

        The verb is one word or two, such as "hold list". The argument is never an option.
        """
        rest = list(options)
        if argument is not None:
            rest = [*rest, "--", argument] if argument.startswith("-") else [argument, *rest]
        # The last step: an insertion into the quoted text could end an argument.
        return Command(map(quoted, (*self.words, *verb.split(), *rest)))


# For texts without a target, such as JSON.
PLAIN: Final = Program()


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
