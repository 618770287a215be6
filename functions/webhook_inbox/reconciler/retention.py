"""Erases the payloads of events whose source has a `retention` that has passed.

    by_received, one shard ─────────────────────────────────────────────────► received_at
       read six times     │ read once, at its retention           │ kept
                          ▲ cursor of the second look             ▲ cursor of the first look

An event with a run that has not ended keeps its payload; the event is read again 1, 2, 4, 8 and 16
days later. A dead run has ended. Rows keep their own lifetimes, so the event stays known. An index
entry tells when its event was erased, so that a later look reads no rows of it. The cursor waits
for an event of which a delivery may still store a payload.

    pk = reconciler    sk = retention    positions: epoch ms by look ("{source}/{days}") and shard
"""

from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Final

from webhook_inbox.domain.audit import EventName
from webhook_inbox.domain.errors import Unavailable
from webhook_inbox.domain.manifest import Manifest, SourceSpec
from webhook_inbox.domain.model import SETTLED, Status
from webhook_inbox.domain.ports import Change, Item, Key, Ports
from webhook_inbox.domain.timestamps import EPOCH, from_ms, to_ms
from webhook_inbox.ledger.erasure import Erasure, remove
from webhook_inbox.ledger.queries import index_pages
from webhook_inbox.ledger.schema import (
    BY_RECEIVED,
    EVENT_LIFE,
    RECEIVED_SHARDS,
    RUN_PREFIX,
    identify,
    live,
    received_buckets,
)
from webhook_inbox.reconciler.received import PAGE, Positions
from webhook_inbox.reconciler.report import Action, ReconcilerReport

# The days between an event's retention and each look at it.
LOOKS: Final = (0, 1, 2, 4, 8, 16)
# Reading longer spans less often saves queries.
STEP: Final = timedelta(minutes=5)
# An erasure may have been interrupted by the pass that began it; an earlier one is complete.
INTERRUPTED: Final = timedelta(hours=12)
# The events that are erased at a time.
AT_ONCE: Final = 100
ENDED: Final = SETTLED | {Status.DEAD_LETTER}

CURSORS: Final = Key("reconciler", "retention")


class ExpiredPayloads:
    """One pass over the events whose retention has passed since the last one."""

    def __init__(
        self,
        manifest: Manifest,
        ports: Ports,
        *,
        report: ReconcilerReport,
        out_of_time: Callable[[], bool],
        now: datetime,
    ) -> None:
        self._sources = [spec for spec in manifest.sources.values() if spec.retention]
        self._table = ports.table
        self._blobs = ports.blobs
        self._report = report
        self._parallel = ports.parallel
        self._out_of_time = out_of_time
        self._now = now

    def erase(self) -> None:
        """Erases until every look has reached its end, or until time is up.

        Raises:
            Unavailable: so many calls failed that the service seems to be down.
        """
        if not self._sources:
            return
        row = self._table.get(CURSORS) or {}
        looks: dict[str, Positions] = {k: dict(v) for k, v in row.get("positions", {}).items()}
        before = {name: dict(positions) for name, positions in looks.items()}
        try:
            for source in self._sources:
                self._look_at(source, looks)
        finally:
            if looks != before:
                # Unsaved progress is only read again.
                with suppress(Unavailable):
                    self._table.update(CURSORS, Change(set={"positions": looks}))

    def _look_at(self, source: SourceSpec, looks: dict[str, Positions]) -> None:
        oldest = to_ms(self._now - EVENT_LIFE)
        for days in LOOKS:
            end = to_ms(self._now - timedelta(seconds=source.retention, days=days))
            if end <= oldest:
                return  # The rows themselves expire first.
            # The first look also reads the events from before the source had a retention.
            begin = end if days else oldest
            start = {str(shard): begin for shard in range(RECEIVED_SHARDS)}
            positions = looks.setdefault(f"{source.name}/{days}", start)
            for shard in positions:
                if end - positions[shard] >= STEP // timedelta(milliseconds=1):
                    self._read_shard(positions, shard, max(positions[shard], oldest), end, source)

    def _read_shard(
        self, positions: Positions, shard: str, start: int, end: int, source: SourceSpec
    ) -> None:
        now = to_ms(self._now)
        for bucket in received_buckets(
            from_ms(start), from_ms(end), newest_first=False, shards=[int(shard)]
        ):
            for page in index_pages(
                self._table, BY_RECEIVED, bucket, low=start + 1, high=end, limit=PAGE
            ):
                due = [
                    entry
                    for entry in page.items
                    if identify(entry["pk"])[0] == source.name
                    and not _is_erased(entry, source, now - end)
                ]
                for first in range(0, len(due), AT_ONCE):
                    if self._out_of_time() or not self._erase_all(due[first : first + AT_ONCE]):
                        return
                    # Another event of the same millisecond may follow.
                    at = due[first : first + AT_ONCE][-1]["received_at"] - 1
                    positions[shard] = max(positions[shard], at)
            if self._out_of_time():
                return
        positions[shard] = end

    def _erase_all(self, entries: Sequence[Item]) -> bool:
        """Erases payloads; returns False if some of the events have to be read again."""
        results = self._parallel.map(self._caught, entries)
        counted = [self._report.attempt(self._count, result) for result in results]
        arriving = any(isinstance(r, Erasure) and r.arriving_until for r in results)
        return all(counted) and not arriving

    def _caught(self, entry: Item) -> Erasure | Exception | None:
        """Returns an event's error instead of raising it, since others are erased meanwhile."""
        try:
            return self._erase(entry)
        except Exception as error:  # noqa: BLE001 - an unreadable row: reported and passed over
            return error

    def _count(self, result: Erasure | Exception | None) -> None:
        if isinstance(result, Exception):
            raise result
        if result is not None:
            self._report.add(Action.ERASED)

    def _erase(self, entry: Item) -> Erasure | None:
        """Erases an event's payload; returns None if a run has not ended."""
        rows = {row["sk"]: row for row in self._table.query(entry["pk"])}
        event = live(rows.get("event"), self._now)
        # An id may have a new event by now.
        if event is None or event["received_at"] != entry["received_at"]:
            return None
        runs = {sk: row["status"] for sk, row in rows.items() if sk.startswith(RUN_PREFIX)}
        begun = all(RUN_PREFIX + name in runs for name in event["runs"])
        if not begun or not ENDED.issuperset(runs.values()):
            return None
        name = EventName(*identify(event["pk"]))
        return remove(self._table, self._blobs, name, event, now=self._now)


def _is_erased(entry: Item, source: SourceSpec, age: int) -> bool:
    """Returns whether an earlier look has erased an event, for a look at this age in ms.

    An operator's erasure within the retention may have left the object of a delivery in progress.
    """
    first = entry["received_at"] + int(source.retention * 1000)
    look = entry["received_at"] + age - to_ms(EPOCH + INTERRUPTED)
    return "erased_at" in entry and first <= entry["erased_at"] < look
