"""Prints results: rich on a terminal, plain text into a pipe, JSON with --json."""

import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final, TextIO

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from webhookctl.display.untrusted import printable, printable_lines

GAP: Final = "  "

Advance = Callable[[int], None]


def counted(count: int, thing: str, things: str = "") -> str:
    """Returns `1 run`, `2 runs`."""
    return f"{count} {thing if count == 1 else things or thing + 's'}"


def cut(text: str, limit: int) -> str:
    """Returns a text of at most `limit` characters, the last one `…` where it was longer."""
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


class Output:
    """Prints results to standard output, notes and progress to standard error."""

    def __init__(self, *, as_json: bool) -> None:
        self.as_json = as_json

    def json(self, data: Mapping[str, Any]) -> None:
        """Prints one JSON object as one line of ASCII."""
        # JSON itself escapes all other control characters.
        _write(sys.stdout, json.dumps(data).replace("\x7f", "\\u007f"))

    def line(self, text: str = "") -> None:
        """Prints a line."""
        _write(sys.stdout, printable(text))

    def lines(self, text: str) -> None:
        """Prints a text with its line breaks; only `json` has its exact characters."""
        _write(sys.stdout, printable_lines(text))

    def note(self, text: str) -> None:
        """Prints a hint to standard error."""
        _write(sys.stderr, printable(text))

    def fields(self, values: Mapping[str, object], *, indent: str = "") -> None:
        """Prints a name and a value per line; an absent value as `-`."""
        width = max(map(len, values), default=0)
        for name, value in values.items():
            shown = "-" if value is None or value == "" else value
            self.line(f"{indent}{name:<{width}}{GAP}{shown}")

    def table(self, headers: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
        """Prints a table; into a pipe as aligned columns, never truncated."""
        cells = [[printable(value) for value in row] for row in rows]
        if sys.stdout.isatty():
            _console(sys.stdout).print(_rich(headers, cells))
            return
        widths = [max(map(len, column)) for column in zip(headers, *cells, strict=True)]
        for row in (headers, *cells):
            line = GAP.join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True))
            _write(sys.stdout, line.rstrip())

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


def _rich(headers: Sequence[str], cells: Sequence[Sequence[str]]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for header in headers:
        table.add_column(header, overflow="fold")
    for row in cells:
        table.add_row(*map(Text, row))
    return table


def _console(stream: TextIO) -> Console:
    return Console(file=stream, highlight=False)


def _write(stream: TextIO, text: str) -> None:
    stream.write(f"{text}\n")
    stream.flush()
