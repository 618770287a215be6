"""Prints results: within the width of a terminal, complete into a pipe, JSON with --json."""

import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any, Final, TextIO

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.text import Text

from webhook_inbox.client.suggestions import Command
from webhookctl.display.json_object import json_object
from webhookctl.display.table import GAP, Column, fitted, plain, wrapped
from webhookctl.display.untrusted import printable, printable_lines

# The columns of a label and the gap behind it.
LABEL: Final = 10

# The exit status where the reader of a pipe has ended, such as `head`: 128 and SIGPIPE.
CLOSED_PIPE: Final = 141

# Ends a line of a command that continues on the next one.
CONTINUED: Final = " \\"

Advance = Callable[[int], None]


def priced(dollars: float) -> str:
    """Returns `less than 0.01 dollars`, or the amount with two digits."""
    return "less than 0.01 dollars" if dollars < 0.01 else f"about {dollars:.2f} dollars"


class Output:
    """Prints results to standard output, notes and progress to standard error."""

    def __init__(self, *, as_json: bool) -> None:
        self.as_json = as_json

    def json(self, data: Mapping[str, Any]) -> None:
        """Prints one JSON object as one line of ASCII."""
        # JSON itself escapes all other control characters.
        _write(sys.stdout, json.dumps(data).replace("\x7f", "\\u007f"))

    def results(self, found: Iterable[object]) -> None:
        """Prints each result as one JSON object."""
        for each in found:
            self.json(json_object(each))

    def result(self, found: object, text: str) -> None:
        """Prints a result: as JSON, or as this line."""
        if self.as_json:
            self.json(json_object(found))
        else:
            self.line(text)

    def line(self, text: str = "") -> None:
        """Prints a line."""
        _write(sys.stdout, printable(text))

    def lines(self, text: str) -> None:
        """Prints a text with its line breaks; only `json` has its exact characters."""
        _write(sys.stdout, printable_lines(text))

    def note(self, text: str) -> None:
        """Prints a hint to standard error."""
        self._told(sys.stderr, text, "")

    def fields(self, values: Mapping[str, object], *, indent: str = "") -> None:
        """Prints a name and a value per line; an absent value as `-`."""
        width = max(map(len, values), default=0)
        for name, value in values.items():
            shown = "-" if value is None or value == "" else value
            self.line(f"{indent}{name:<{width}}{GAP}{shown}")

    def text(self, text: str, *, indent: str = "", hanging: str = "") -> None:
        """Prints a paragraph; on a terminal its lines break between words.

        `hanging` follows the indent from the second line on.
        """
        self._told(sys.stdout, text, indent, hanging)

    def command(self, command: Command) -> None:
        """Prints a command, which can be pasted; on a terminal it is folded by backslashes."""
        for line in folded(command, _width(sys.stdout)):
            _write(sys.stdout, printable(line))

    def labelled(self, label: str, parts: Iterable[str | Command]) -> None:
        """Prints a label and the paragraphs and commands beside it; nothing without any."""
        indent, width = f"{label:<{LABEL}}", _width(sys.stdout)
        left = None if width is None else width - LABEL
        for part in parts:
            lines = folded(part, left) if isinstance(part, Command) else wrapped(part, left)
            for line in lines:
                _write(sys.stdout, f"{indent}{printable(line)}".rstrip())
                indent = " " * LABEL

    def table(
        self,
        columns: Sequence[Column],
        rows: Sequence[Sequence[Any]],
        *,
        now: datetime | None = None,
    ) -> None:
        """Prints a table; `now` is given where cells are times. See `display.table`."""
        width = _width(sys.stdout)
        if width is None:
            for line in plain(columns, rows):
                _write(sys.stdout, line)
            return
        heading, *lines = fitted(columns, rows, width=width, now=now or datetime.now(UTC))
        # Whole lines: rich would wrap them again.
        _console(sys.stdout).print(Text(heading, style="bold"), soft_wrap=True)
        for line in lines:
            _write(sys.stdout, line)

    def _told(self, stream: TextIO, text: str, indent: str, hanging: str = "") -> None:
        width = _width(stream)
        left = None if width is None else width - len(indent) - len(hanging)
        first, *more = wrapped(text, left)
        _write(stream, f"{indent}{first}".rstrip())
        for line in more:
            _write(stream, f"{indent}{hanging}{line}".rstrip())

    @contextmanager
    def progress(self, what: str, total: int) -> Iterator[Advance]:
        """Shows progress: a bar on a terminal, otherwise a line per step."""
        if not sys.stderr.isatty():
            yield self._counting(what, total)
            return
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
        with Progress(*columns, TimeRemainingColumn(), console=_console(sys.stderr)) as bar:
            task = bar.add_task(what, total=total)
            yield lambda count: bar.advance(task, count)

    def _counting(self, what: str, total: int) -> Advance:
        done = 0

        def advance(count: int) -> None:
            nonlocal done
            done += count
            self.note(f"{what} {done} of {total}")

        return advance


def _width(stream: TextIO) -> int | None:
    """Returns a terminal's columns, None for a pipe."""
    return _console(stream).width if stream.isatty() else None


def _console(stream: TextIO) -> Console:
    return Console(file=stream, highlight=False)


def _write(stream: TextIO, text: str) -> None:
    try:
        stream.write(f"{text}\n")
        stream.flush()
    except BrokenPipeError:
        # Python flushes the stream again at its exit, which would print another error.
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
        raise SystemExit(CLOSED_PIPE) from None


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
