"""Counts events of types that a source does not store, per source, UTC day and type.

The sender chooses the text of a type: at most 50 types per source and day have a count of their
own, and each is cut to 100 characters. The rest is counted together. A count is approximate: a
write whose answer was lost may count twice, and counts that wait in memory end with the process.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final

from webhook_inbox.domain.conditions import Absent, Less, Present, either
from webhook_inbox.domain.errors import ConditionFailed
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
# The kinds of rows: of one type, and of the types without one.
_TYPE: Final = "type"
_REST: Final = "rest"


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
        self._full: dict[str, str] = {}  # the last day that is full, by source

    def add(self, source: str, type_: str, now: datetime) -> None:
        """Adds an event to the counts in memory."""
        day, text = f"{now:%Y-%m-%d}", _text(type_)
        key: tuple[str, str, str | None] = (source, day, text)
        if key not in self._pending and len(self._pending) >= PENDING:
            key = (source, day, None)
        self._pending[key] = self._pending.get(key, 0) + 1

    def flush(self, now: datetime) -> str:
        """Writes the counts in memory; returns why that failed, "" otherwise. Never raises.

        After a failure the counts stay in memory, and the next 30 seconds have no write.
        """
        if self._paused_at is not None and timedelta() <= now - self._paused_at < PAUSE:
            return ""
        try:
            for source, day, type_ in list(self._pending):
                self._write(source, day, type_, now)
        except Exception as error:  # noqa: BLE001 - an acknowledgement never fails because of it
            self._paused_at = now
            return f"the count of ignored types was not written: {error}"
        self._paused_at = None
        return ""

    def _write(self, source: str, day: str, type_: str | None, now: datetime) -> None:
        key, count = _key(source, day, type_), self._pending[source, day, type_]
        times = {"last_at": to_ms(now), "expires_at": to_seconds(now + EVENT_LIFE)}
        change = Change(set=times, add={"count": count})
        if type_ is None:
            self._table.update(key, change)
        else:
            try:
                self._table.update(key, change, when=Present("count"))
            except ConditionFailed:
                own = self._claims(source, day, times)
                self._table.update(key if own else _key(source, day, None), change)
        del self._pending[source, day, type_]

    def _claims(self, source: str, day: str, times: Mapping[str, int]) -> bool:
        """Claims one of the day's counts for a new type; False if all are taken."""
        if self._full.get(source) == day:
            return False
        free = either(Absent("types"), Less("types", TYPES))
        change = Change(set={"expires_at": times["expires_at"]}, add={"types": 1})
        try:
            self._table.update(_key(source, day, None), change, when=free)
        except ConditionFailed:
            self._full[source] = day
            return False
        return True


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


def _text(type_: str) -> str:
    # JSON can hold lone surrogates, which DynamoDB rejects.
    text = type_.encode(errors="replace").decode()
    return text if len(text) <= TYPE_LIMIT else f"{text[: TYPE_LIMIT - 1]}…"
