"""Reads the ledger: one event, the events of a period, the runs of the due index."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from webhook_inbox.domain.model import Overview, Run
from webhook_inbox.domain.ports import Blobs, Item, Key, Page, Table
from webhook_inbox.domain.timestamps import from_ms, to_ms
from webhook_inbox.ledger import due_handlers, payloads
from webhook_inbox.ledger.schema import (
    BY_DUE,
    BY_RECEIVED,
    DUE_KINDS,
    EFFECT_PREFIX,
    RUN_PREFIX,
    WAIT_PREFIX,
    due_buckets,
    event_from,
    event_pk,
    identify,
    live,
    received_buckets,
    run_from,
)

PAGE: Final = 100
FOR_EVER: Final = (1 << 53) - 1


@dataclass(frozen=True, slots=True)
class Received:
    """An event as the `by_received` index names it."""

    source: str
    event_id: str
    type: str
    received_at: datetime


class Ledger:
    """Reads rows as records. Without `blobs` it reads no bodies."""

    def __init__(self, *, table: Table, blobs: Blobs | None = None) -> None:
        self._table = table
        self._blobs = blobs

    def overview(
        self, source: str, event_id: str, *, now: datetime, with_body: bool = False
    ) -> Overview | None:
        """Returns an event with its runs and effects, read consistently; None if unknown.

        Its body is empty unless it is asked for.
        """
        rows = list(self._table.query(event_pk(source, event_id)))
        event_row = next((live(row, now) for row in rows if row["sk"] == "event"), None)
        if event_row is None:
            return None
        body = payloads.unpack(event_row, self._blobs) if with_body and self._blobs else b""
        return Overview(
            event=event_from(event_row, body),
            runs=tuple(run_from(row) for row in rows if row["sk"].startswith(RUN_PREFIX)),
            effects=tuple(self._whole(row) for row in rows if row["sk"].startswith(EFFECT_PREFIX)),
            waits=tuple(row for row in rows if row["sk"].startswith(WAIT_PREFIX)),
        )

    def _whole(self, effect: Item) -> Item:
        """Returns an effect with the shared row of its business key merged in."""
        if "shared" not in effect:
            return effect
        return {**(self._table.get(Key(effect["shared"], "effect")) or {}), **effect}

    def received(
        self, low: datetime, high: datetime, *, first_shard: int = 0
    ) -> Iterator[list[Received]]:
        """Yields pages of the events received in [low, high], oldest hour first.

        Within an hour events come shard by shard, `first_shard` first. Eventually consistent.
        """
        for bucket in received_buckets(low, high, newest_first=False, first_shard=first_shard):
            start: Mapping[str, Any] | None = None
            while True:
                page = self._table.query_index(
                    BY_RECEIVED,
                    bucket,
                    low=to_ms(low),
                    high=to_ms(high),
                    limit=PAGE,
                    start=start,
                )
                yield [_received(item) for item in page.items]
                start = page.next
                if start is None:
                    break

    def due(
        self,
        bucket: str,
        *,
        low: int = 0,
        high: int = FOR_EVER,
        start: Mapping[str, Any] | None = None,
    ) -> Iterator[list[tuple[Item, Item]]]:
        """Yields pages of (index entry, run row) of one partition, earliest first."""
        while True:
            page = self.due_page(bucket, low=low, high=high, start=start)
            yield self.rows_of(page.items)
            start = page.next
            if start is None:
                return

    def due_page(
        self,
        bucket: str,
        *,
        low: int = 0,
        high: int = FOR_EVER,
        start: Mapping[str, Any] | None = None,
    ) -> Page:
        """Returns one page of the entries of a partition of the due index, earliest first."""
        return self._table.query_index(BY_DUE, bucket, low=low, high=high, limit=PAGE, start=start)

    def rows_of(self, entries: Sequence[Item]) -> list[tuple[Item, Item]]:
        """Returns entries of the due index with their rows, in this order.

        The index may lag: a row may have moved on since, or be gone (then it is left out).
        """
        keys = [Key(entry["pk"], entry["sk"]) for entry in entries]
        rows = {(row["pk"], row["sk"]): row for row in self._table.get_many(keys)}
        return [(e, rows[e["pk"], e["sk"]]) for e in entries if (e["pk"], e["sk"]) in rows]

    def due_buckets(self, kinds: Iterable[str] = DUE_KINDS) -> list[str]:
        """Returns every partition of these kinds that the due index may have, in a stable order.

        Dead runs are in those of the kind `WATCH`.
        """
        kinds = tuple(kinds)
        return [
            bucket
            for handler in due_handlers.registered(self._table)
            for bucket in due_buckets(handler, kinds)
        ]

    def due_runs(self) -> Iterator[Run]:
        """Yields every run of the due index, dead ones included."""
        for bucket in self.due_buckets():
            for page in self.due(bucket):
                yield from (run_from(row) for _, row in page)


def _received(item: Item) -> Received:
    source, event_id = identify(item["pk"])
    return Received(source, event_id, item["type"], from_ms(item["received_at"]))
