"""Reads the ledger: one event, the events of a period, the runs of the due index."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from webhook_inbox.domain.model import Overview, Run
from webhook_inbox.domain.ports import Blobs, Item, Key, Table
from webhook_inbox.ledger import payloads
from webhook_inbox.ledger.schema import (
    BY_DUE,
    DUE_SHARDS,
    EFFECT_PREFIX,
    RUN_PREFIX,
    WAIT_PREFIX,
    event_from,
    event_pk,
    live,
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

    def due(
        self,
        shard: int,
        *,
        low: int = 0,
        high: int = FOR_EVER,
        start: Mapping[str, Any] | None = None,
    ) -> Iterator[list[tuple[Item, Item]]]:
        """Yields pages of (index entry, run row) of one shard of the due index, earliest first.

        The index may lag: a row may have moved on since, or be gone (then it is left out).
        """
        while True:
            page = self._table.query_index(
                BY_DUE, str(shard), low=low, high=high, limit=PAGE, start=start
            )
            keys = [Key(item["pk"], item["sk"]) for item in page.items]
            rows = {(row["pk"], row["sk"]): row for row in self._table.get_many(keys)}
            yield [(i, rows[i["pk"], i["sk"]]) for i in page.items if (i["pk"], i["sk"]) in rows]
            start = page.next
            if start is None:
                return

    def due_runs(self) -> Iterator[Run]:
        """Yields every run of the due index, dead ones included."""
        for shard in range(DUE_SHARDS):
            for page in self.due(shard):
                yield from (run_from(row) for _, row in page)
