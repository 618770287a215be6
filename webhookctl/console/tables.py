"""The cells of a page's table."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from webhookctl.console.views import event_path


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell: a text, or with `kind` a "time" or the "id" of an event.

    It links to the page `href`, unless that is "".
    """

    value: Any
    kind: str = "text"
    href: str = ""


@dataclass(frozen=True, slots=True)
class Row:
    """A row with the form fields of its actions.

    Attributes:
        cells: one cell a column.
        actions: the actions that the row offers.
    """

    cells: Sequence[Cell]
    actions: Sequence["RowAction"] = ()


@dataclass(frozen=True, slots=True)
class RowAction:
    """A button of a row, which opens the page that explains and confirms the action.

    Attributes:
        label: the text of the button.
        href: the page of the action.
        refused: why it is not possible now, "" if it is.
    """

    label: str
    href: str
    refused: str = ""


def text(value: object) -> Cell:
    """Returns a cell of text; `-` for an absent value."""
    return Cell("-" if value is None or value == "" else value)


def event(source: str, event_id: str) -> Cell:
    """Returns a cell with an event's id, which links to its page."""
    return Cell(event_id, "id", event_path(source, event_id))
