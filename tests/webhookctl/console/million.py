"""A ledger of a million events, whose rows are made when they are read."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from itertools import islice
from math import ceil, floor
from typing import Any, Final

from webhook_inbox.adapters.memory import MemoryTable
from webhook_inbox.domain.model import Status, StoredEvent
from webhook_inbox.domain.ports import Item, Key, Page, Table
from webhook_inbox.domain.timestamps import to_ms
from webhook_inbox.ledger.queries import FOR_EVER
from webhook_inbox.ledger.schema import (
    BY_RECEIVED,
    DEAD_FROM,
    RUN_LIFE,
    WAKE,
    WATCH,
    dead_due_at,
    event_pk,
    event_to,
    run_identity,
)

SOURCE: Final = "acme"
HANDLER: Final = "acme.fulfil"
REJECTED: Final = f"rejected#{SOURCE}"
PREFIX: Final = event_pk(SOURCE, "evt_")
# The statuses of the events, in turn: 250,000 of each.
TURNS: Final = (Status.DONE, Status.DEAD_LETTER, Status.DEFERRED, Status.FAILED)
DEAD: Final = 1
WAITING: Final = 2
SHARDS: Final = 4


class Million(Table):
    """Reads as a table with events of a `span` until now; everything else is in a small table.

    Attributes:
        read: the rows that were made.
    """

    def __init__(
        self,
        small: MemoryTable,
        now: datetime,
        *,
        events: int = 1_000_000,
        span: timedelta = timedelta(days=1),
    ) -> None:
        self._small = small
        self._now = now
        self._step = span / events
        self.events = events
        self.read = 0

    def get(self, key: Key, *, consistent: bool = True) -> Item | None:
        """See the port."""
        return next(iter(self.get_many([key])), None) or self._small.get(key, consistent=consistent)

    def get_many(self, keys: Sequence[Key], *, only: Sequence[str] = ()) -> list[Item]:
        """See the port."""
        rows = (row for key in keys for row in self._rows(key.pk) if row["sk"] == key.sk)
        return [*rows, *self._small.get_many(keys, only=only)]

    def query(self, pk: str, **options: Any) -> Iterator[Item]:
        """See the port."""
        if pk == REJECTED:
            return self._rejected()
        return iter([*self._rows(pk), *self._small.query(pk, **options)])

    def query_index(
        self,
        index: str,
        value: str,
        *,
        low: int,
        high: int,
        newest_first: bool = False,
        limit: int | None = None,
        start: Mapping[str, Any] | None = None,
    ) -> Page:
        """See the port."""
        numbers = self._partition(index, value, low, high)
        if start is not None:
            at = numbers.index(int(start["number"]))
            numbers = numbers[:at] if newest_first else numbers[at + 1 :]
        ordered = reversed(numbers) if newest_first else numbers
        found = [(number, self._entry(index, value, number)) for number in islice(ordered, limit)]
        more = limit is not None and len(numbers) > limit
        items = [entry for _, entry in found]
        return Page(items, {"number": found[-1][0]} if more else None)

    def put(self, item: Item, **options: Any) -> None:
        """See the port."""
        self._small.put(item, **options)

    def update(self, *args: Any, **options: Any) -> Item:
        """See the port."""
        return self._small.update(*args, **options)

    def delete(self, key: Key) -> None:
        """See the port."""
        self._small.delete(key)

    def received_at(self, number: int) -> datetime:
        """Returns when an event was received; the last one just now."""
        return self._now - (self.events - number) * self._step

    def _partition(self, index: str, value: str, low: int, high: int) -> Sequence[int]:
        """Returns the numbers of the events of a partition between two values, in order.

        The shard of an event follows from its number, which no reader looks at.
        """
        shard = int(value.rpartition("#")[2])
        if index == BY_RECEIVED:
            hour = datetime.fromisoformat(f"{value.partition('#')[0]}:00+00:00")
            begin, end = max(to_ms(hour), low), min(to_ms(hour + timedelta(hours=1)) - 1, high)
            return self._between(begin, end)[shard::SHARDS]
        if f"#{HANDLER}#" not in value:
            return ()
        turn = DEAD if low >= DEAD_FROM else WAITING
        kind = WATCH if low >= DEAD_FROM else WAKE
        if not value.startswith(kind):
            return ()
        if low > DEAD_FROM or DEAD_FROM < high < FOR_EVER:
            ends = RUN_LIFE // timedelta(milliseconds=1) + DEAD_FROM
            numbers = self._between(low - ends, high - ends)
        else:
            numbers = range(self.events)
        every = SHARDS * len(TURNS)
        first = numbers.start - numbers.start % every + shard * len(TURNS) + turn
        return range(first, numbers.stop, every)

    def _between(self, low: int, high: int) -> range:
        """Returns the numbers of the events that were received between two times, in ms."""
        first, step = to_ms(self.received_at(0)), self._step / timedelta(milliseconds=1)
        begin, end = ceil((low - first) / step), floor((high - first) / step) + 1
        return range(max(begin, 0), max(min(end, self.events), 0))

    def _entry(self, index: str, value: str, number: int) -> Item:
        self.read += 1
        pk, at = event_pk(SOURCE, f"evt_{number}"), self.received_at(number)
        if index == BY_RECEIVED:
            listed = {"type": "paid", "source": SOURCE, "runs": [HANDLER]}
            return {"pk": pk, "sk": "event", "received_at": to_ms(at), **listed}
        dead = value.startswith(WATCH)
        due_at = dead_due_at(at + RUN_LIFE) if dead else to_ms(self._now) + number
        return {"pk": pk, "sk": f"run#{HANDLER}", "due_at": due_at}

    def _rows(self, pk: str) -> list[Item]:
        number = _number_of(pk)
        if number is None or number >= self.events:
            return []
        self.read += 2
        at = self.received_at(number)
        event = StoredEvent(
            source=SOURCE,
            event_id=f"evt_{number}",
            type="paid",
            received_at=at,
            body=b"",
            fingerprint="0" * 64,
            headers={},
            runs=(HANDLER,),
        )
        status = TURNS[number % len(TURNS)]
        run = {
            **run_identity(event, HANDLER, expires_at=at + RUN_LIFE),
            "pk": pk,
            "sk": f"run#{HANDLER}",
            "status": str(status),
            "last_error": "" if status is Status.DONE else f"KeyError: 'order-{number}'",
            "last_at": to_ms(at),
        }
        return [event_to(event), run]

    def _rejected(self) -> Iterator[Item]:
        for number in reversed(range(self.events)):
            self.read += 1
            at = self.received_at(number)
            yield {
                "pk": REJECTED,
                "sk": f"{to_ms(at):013d}#{number:016x}",
                "reason": "invalid-signature",
                "method": "POST",
                "path": "/webhooks/acme",
                "query": "",
                "headers": {},
                "fingerprint": "0",
                "body_size": 2,
                "expires_at": to_ms(self._now) // 1000 + 3600,
            }


def _number_of(pk: str) -> int | None:
    number = pk.removeprefix(PREFIX)
    return int(number) if number.isdecimal() else None
