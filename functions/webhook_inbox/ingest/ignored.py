"""Counts events of types that a source does not store, per source, UTC day and type.

The sender chooses the text of a type: at most 50 types per source and day have a count of their
own, and each is cut to 100 characters. The rest is counted together. A count is approximate: a
write whose answer was lost may count twice, and counts that wait in memory end with the process.
"""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final

from webhook_inbox.domain.conditions import Absent, Less, either, every
from webhook_inbox.domain.errors import ConditionFailed, NoTimeLeft
from webhook_inbox.domain.ports import Change, Item, Key, Table
from webhook_inbox.domain.timestamps import from_ms, to_ms, to_seconds
from webhook_inbox.ledger.schema import EVENT_LIFE, live

# Per source and day.
TYPES: Final = 50
TYPE_LIMIT: Final = 100
# The pause after a write that failed, so that an outage slows one acknowledgement, not each.
PAUSE: Final = timedelta(seconds=30)
# The counts that wait in memory meanwhile, by type.
PENDING: Final = 200
# The counts that one flush writes, so that a backlog delays no acknowledgement.
KEYS: Final = 5
# The kinds of rows: the types with a count, the count of one, and that of the types without one.
_PLACES: Final = "places"
_TYPE: Final = "type"
_REST: Final = "rest"
# In the row of the places, the prefix of the attribute of a type.
_PLACE: Final = "type:"


@dataclass(frozen=True, slots=True)
class IgnoredType:
    """The count of a type; `type` is None for the types without a count of their own."""

    source: str
    type: str | None
    count: int
    last_at: datetime


class IgnoredTypes:
    """Counts ignored events for one execution environment."""

    def __init__(self, table: Table) -> None:
        self._table = table
        self._pending: dict[tuple[str, str, str | None], int] = {}
        self._paused_at: datetime | None = None
        self._placed: dict[str, tuple[str, frozenset[str]]] = {}  # a day and its types, by source

    def add(self, source: str, type_: str, now: datetime) -> None:
        """Adds an event to the counts in memory."""
        day, text = f"{now:%Y-%m-%d}", _text(type_)
        key: tuple[str, str, str | None] = (source, day, text)
        if key not in self._pending and len(self._pending) >= PENDING:
            key = (source, day, None)
        self._pending[key] = self._pending.get(key, 0) + 1

    def due(self, now: datetime) -> bool:
        """Tells whether `flush` would write."""
        paused = self._paused_at is not None and timedelta() <= now - self._paused_at < PAUSE
        return bool(self._pending) and not paused

    def flush(self, now: datetime) -> str:
        """Writes up to 5 counts, each in at most two writes, the oldest first.

        Returns why that failed, "" otherwise; never raises. After a failure the counts stay in
        memory, and the next 30 seconds have no write.
        """
        try:
            for _ in range(KEYS):
                if self.due(now):
                    self._write(next(iter(self._pending)), now)
        except NoTimeLeft:
            return ""
        except Exception as error:  # noqa: BLE001 - an acknowledgement never fails because of it
            self._paused_at = now
            return f"the count of ignored types was not written: {error}"
        return ""

    def _write(self, waiting: tuple[str, str, str | None], now: datetime) -> None:
        """Writes a count, or adds it to the rest in memory if the day's places are taken."""
        source, day, type_ = waiting
        if type_ is not None and not self._has_place(source, day, type_, now):
            rest = (source, day, None)
            self._pending[rest] = self._pending.get(rest, 0) + self._pending.pop(waiting)
            return
        times = {"last_at": to_ms(now), "expires_at": _end(now)}
        change = Change(set=times, add={"count": self._pending[waiting]})
        self._table.update(_key(source, day, type_), change)
        del self._pending[waiting]

    def _has_place(self, source: str, day: str, type_: str, now: datetime) -> bool:
        known, types = self._placed.get(source, ("", frozenset()))
        if known != day or (type_ not in types and len(types) < TYPES):
            types = self._claimed(source, day, type_, now)
            self._placed[source] = day, types
        return type_ in types

    def _claimed(self, source: str, day: str, type_: str, now: datetime) -> frozenset[str]:
        """Claims a place for a type if it has none and one is free; returns the day's types.

        Name and number change in one write, so a repeated or a simultaneous one takes no second
        place.
        """
        name = _PLACE + type_
        free = every(Absent(name), either(Absent("types"), Less("types", TYPES)))
        change = Change(set={name: True, "expires_at": _end(now)}, add={"types": 1})
        try:
            row = self._table.update(Key(_partition(source), f"{_PLACES}#{day}"), change, when=free)
        except ConditionFailed as error:
            row = error.old or {}
        return frozenset(each.removeprefix(_PLACE) for each in row if each.startswith(_PLACE))


def find_ignored(
    table: Table, source: str, *, since: datetime, until: datetime, now: datetime
) -> list[IgnoredType]:
    """Returns the counts of a source's types on the UTC days from `since` to `until`.

    The most frequent type comes first, and the types without a count of their own come last.
    """
    first, last = f"{since:%Y-%m-%d}", f"{until:%Y-%m-%d}"
    found: dict[str | None, IgnoredType] = {}
    for row in table.query(_partition(source)):
        day, type_ = _parts(row)
        if live(row, now) is not None and "count" in row and first <= day <= last:
            each = IgnoredType(source, type_, row["count"], from_ms(row["last_at"]))
            known = found.get(each.type, each)
            count = each.count if known is each else each.count + known.count
            last_at = max(each.last_at, known.last_at)
            found[each.type] = replace(each, count=count, last_at=last_at)
    return sorted(found.values(), key=lambda each: (each.type is None, -each.count))


def _parts(row: Item) -> tuple[str, str | None]:
    """Returns the day and the type of a row."""
    _, day, *type_ = row["sk"].split("#", 2)
    return day, type_[0] if type_ else None


def _partition(source: str) -> str:
    return f"ignored#{source}"


def _key(source: str, day: str, type_: str | None) -> Key:
    rest, own = f"{_REST}#{day}", f"{_TYPE}#{day}#{type_}"
    return Key(_partition(source), rest if type_ is None else own)


def _end(now: datetime) -> int:
    return to_seconds(now + EVENT_LIFE)


def _text(type_: str) -> str:
    # JSON can hold lone surrogates, which DynamoDB rejects.
    text = type_.encode(errors="replace").decode()
    return text if len(text) <= TYPE_LIMIT else f"{text[: TYPE_LIMIT - 1]}…"
