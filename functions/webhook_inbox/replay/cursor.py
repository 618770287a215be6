"""Where a replay continues: a place in one of the searches, as text that the caller returns."""

import base64
import json
from dataclasses import astuple, dataclass
from typing import Any, Final

from webhook_inbox.ledger.queries import FOR_EVER, DueEntry
from webhook_inbox.ledger.schema import DEAD_FROM

NOT_OURS: Final = "cursor: this function did not return it for such a request"
# The last millisecond that a datetime has.
_LAST_MS: Final = 253_402_300_799_999

# Source, event id and handler.
RunName = tuple[str, str, str]


@dataclass(frozen=True, slots=True)
class NamedPlace:
    """A place in the search of named events: the id's number, and the last run read of it."""

    number: int
    source: str = ""
    handler: str = ""


@dataclass(frozen=True, slots=True)
class OpenPlace:
    """A place in the search for open runs: the last entry read, in its bucket of the due index."""

    due_at: int
    bucket: str
    pk: str
    sk: str


@dataclass(frozen=True, slots=True)
class ReceivedPlace:
    """A place in the search by time of receipt, in ms: the last run read."""

    received_at: int
    source: str
    event_id: str
    handler: str


@dataclass(frozen=True, slots=True)
class ChosenPlace:
    """A place in a fixed selection: the number of runs read."""

    number: int


Place = DueEntry | NamedPlace | OpenPlace | ReceivedPlace | ChosenPlace
# Each kind with the least and the greatest number.
_KINDS: Final[dict[str, tuple[type[Place], int, int]]] = {
    "dead": (DueEntry, DEAD_FROM, FOR_EVER),
    "named": (NamedPlace, 0, FOR_EVER),
    "open": (OpenPlace, 0, DEAD_FROM - 1),
    "received": (ReceivedPlace, 0, _LAST_MS),
    "chosen": (ChosenPlace, 0, FOR_EVER),
}


@dataclass(frozen=True, slots=True)
class Cursor:
    """Where a replay continues.

    Attributes:
        after: the last candidate that was read; None for the beginning.
        again: runs before it that could not be reset; they are read first.
        begun: when the first page began, in ms.
    """

    after: Place | None = None
    again: tuple[RunName, ...] = ()
    begun: int = 0

    def encode(self) -> str:
        """Returns the cursor as text."""
        kind = next((name for name, (type_, *_) in _KINDS.items() if type(self.after) is type_), "")
        place = astuple(self.after) if self.after is not None else ()
        text = json.dumps([kind, self.begun, self.again, *place])
        return base64.urlsafe_b64encode(text.encode()).decode()

    @classmethod
    def decode(cls, text: str) -> "Cursor":
        """Reads a cursor; raises ValueError if `encode` did not make it."""
        try:
            kind, begun, names, *place = json.loads(base64.urlsafe_b64decode(text.encode()))
            again = tuple((str(s), str(e), str(h)) for s, e, h in names)
            after = _place(kind, place)
        except (ValueError, TypeError, RecursionError) as error:
            raise ValueError(NOT_OURS) from error
        if type(begun) is not int or not 0 <= begun <= _LAST_MS:
            raise ValueError(NOT_OURS)
        return cls(after, again, begun)


def _place(kind: str, values: list[Any]) -> Place | None:
    """Returns a place; raises ValueError or TypeError for values of another type or number."""
    if kind == "" and not values:
        return None
    if kind not in _KINDS:
        raise ValueError(kind)
    type_, low, high = _KINDS[kind]
    number, *texts = values
    if type(number) is not int or not low <= number <= high:
        raise ValueError(number)
    if not all(isinstance(each, str) for each in texts):
        raise TypeError(texts)
    return type_(number, *texts)
