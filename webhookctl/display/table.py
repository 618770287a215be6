"""Lays out tables: complete in a pipe, within the width of a terminal.

In a pipe every cell is complete and times are in ISO 8601. On a terminal times are relative and
never wrap; names, then ids, are shortened in the middle until the row fits, and differ as much as
the complete ones do; a note stands beside its row where there is room, otherwise below it.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import Enum, auto
from textwrap import wrap
from typing import Any, Final

from rich.cells import cell_len

from webhook_inbox.client.times import brief, iso
from webhookctl.display.untrusted import printable

GAP: Final = "  "
ELLIPSIS: Final = "…"
# Columns of a shortened name or id, and of a note beside its row, at least.
SHORTEST: Final = 11
BESIDE: Final = 36
NOTE_LINES: Final = 3
# Columns of a wrapped text, at least.
NARROWEST: Final = 20


# Texts that stay on one line: commands in backticks, and durations.
_DURATION: Final = r"\d+ (?:s|min|h|d)\b"
_KEPT: Final = re.compile(rf"`[^`]+`|(?:\bin )?\b{_DURATION}(?: {_DURATION})?(?: ago)?")
# Stands for a space in them while a text is wrapped; no printable text contains it.
_NO_BREAK: Final = "\x00"


class Fit(Enum):
    """How a column fits into a terminal."""

    WHOLE = auto()  # never shortened: times, statuses, numbers
    NAME = auto()  # shortened in the middle, before the ids
    ID = auto()  # shortened in the middle, last
    NOTE = auto()  # sentences; the last column


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table."""

    title: str
    fit: Fit = Fit.WHOLE


def short(text: str, width: int) -> str:
    """Returns a text of at most `width` columns, with `…` in its middle where it was longer."""
    if cell_len(text) <= width:
        return text
    head = (width - 1) // 2
    return f"{text[:head]}{ELLIPSIS}{text[len(text) - (width - 1 - head) :]}"


def wrapped(text: str, width: int | None, *, lines: int | None = None) -> list[str]:
    """Returns a text's lines in which every character shows, one if `width` is None.

    Commands in backticks, durations and words stay on one line. With a limit of lines, the last one
    ends with `…` where there are more, and a word that is wider than a line is broken.
    """
    shown = printable(text)
    if width is None:
        return [shown]
    kept = _KEPT.sub(lambda found: found[0].replace(" ", _NO_BREAK), shown)
    made = wrap(
        kept,
        max(width, NARROWEST),
        max_lines=lines,
        placeholder=f" {ELLIPSIS}",
        break_long_words=lines is not None,
        break_on_hyphens=False,
    )
    return [line.replace(_NO_BREAK, " ") for line in made] or [""]


def plain(columns: Sequence[Column], rows: Sequence[Sequence[Any]]) -> Iterator[str]:
    """Yields the lines of a table for a pipe."""
    cells = [[_complete(value) for value in row] for row in rows]
    titles = [column.title for column in columns]
    widths = [max(map(len, column)) for column in zip(titles, *cells, strict=True)]
    for row in (titles, *cells):
        line = (f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True))
        yield GAP.join(line).rstrip()


def fitted(
    columns: Sequence[Column], rows: Sequence[Sequence[Any]], *, width: int, now: datetime
) -> Iterator[str]:
    """Yields the lines of a table for a terminal, its heading first."""
    noted = columns[-1].fit is Fit.NOTE
    count = len(columns) - noted
    cells = [[_brief(value, now) for value in row[:count]] for row in rows]
    notes = [_lines(row[-1]) if noted else [] for row in rows]
    widths = _widths(columns[:count], cells, width)
    left = width - sum(widths) - len(GAP) * count
    longest = max((cell_len(line) for note in notes for line in note), default=0)
    beside = left >= min(max(longest, len(columns[-1].title)), BESIDE)
    titles = [column.title for column in columns]
    yield _row(titles if beside else titles[:count], widths)
    for row, note in zip(cells, notes, strict=True):
        head = _row([short(cell, to) for cell, to in zip(row, widths, strict=True)], widths)
        indent = sum(widths) + len(GAP) * count if beside else len(GAP)
        told = [part for line in note for part in wrapped(line, width - indent, lines=NOTE_LINES)]
        if beside and told:
            yield f"{head:<{indent - cell_len(head) + len(head)}}{told.pop(0)}".rstrip()
        else:
            yield head
        yield from (f"{'':<{indent}}{line}" for line in told)


def _row(cells: Sequence[str], widths: Sequence[int]) -> str:
    # A note's title has no width of its own.
    every = (*widths, *(0 for _ in cells[len(widths) :]))
    padded = (cell + " " * (to - cell_len(cell)) for cell, to in zip(cells, every, strict=True))
    return GAP.join(padded).rstrip()


def _widths(columns: Sequence[Column], cells: Sequence[Sequence[str]], width: int) -> list[int]:
    """Returns the columns' widths; those of names, then of ids, shrink until the row fits."""
    texts = [[row[place] for row in cells] for place in range(len(columns))]
    widths = [
        max(cell_len(text) for text in (column.title, *texts[place]))
        for place, column in enumerate(columns)
    ]
    for fit in (Fit.NAME, Fit.ID):
        least = [
            _least(texts[place], widths[place]) if column.fit is fit else widths[place]
            for place, column in enumerate(columns)
        ]
        while sum(widths) + len(GAP) * (len(columns) - 1) > width and widths != least:
            wide = max(
                (place for place in range(len(columns)) if widths[place] > least[place]),
                key=widths.__getitem__,
            )
            widths[wide] -= 1
    return widths


def _least(texts: Sequence[str], widest: int) -> int:
    """Returns the least width at which different texts remain different."""
    every = set(texts)
    for width in range(min(SHORTEST, widest), widest):
        if len({short(text, width) for text in every}) == len(every):
            return width
    return widest


def _lines(value: Any) -> list[str]:
    """Returns the lines of a note: one of a text, several of a tuple."""
    return [printable(line) for line in (value if isinstance(value, tuple) else (value,)) if line]


def _complete(value: Any) -> str:
    if isinstance(value, tuple):
        return "; ".join(map(printable, value)) or "-"
    return printable(iso(value)) if isinstance(value, datetime) else _text(value)


def _brief(value: Any, now: datetime) -> str:
    return brief(value, now) if isinstance(value, datetime) else _text(value)


def _text(value: Any) -> str:
    return "-" if value is None or value == "" else printable(value)
