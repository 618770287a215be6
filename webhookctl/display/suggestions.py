"""Suggested commands, which can be pasted into the shell."""

import os
import shutil
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

from webhookctl.display.untrusted import quoted
from webhookctl.target import Selection

NAME: Final = "webhookctl"
CONTINUED: Final = " \\"


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


def folded(command: Command, width: int | None) -> list[str]:
    r"""Returns a command's lines of at most `width` columns, joined by `\` for the shell.

    An option and its value stay on one line; a longer word has a line of its own.
    """
    if width is None or len(command) <= width:
        return [str(command)]
    lines: list[str] = []
    for part in _parts(command.words):
        joined = f"{lines[-1]} {part}" if lines else part
        if lines and len(joined) > width - len(CONTINUED):
            lines[-1] += CONTINUED
            joined = f"  {part}"
            lines.append(joined)
        else:
            lines[-1:] = [joined]
    return lines


def _parts(words: Iterable[str]) -> list[str]:
    parts: list[str] = []
    for word in words:
        value = bool(parts) and parts[-1].startswith("--") and " " not in parts[-1]
        if value and not word.startswith("-"):
            parts[-1] += f" {word}"
        else:
            parts.append(word)
    return parts


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
        return type(self)((*self.words, *selection.options))

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
