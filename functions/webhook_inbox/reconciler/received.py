"""Reads every event twice by durable cursors: after 3 minutes, and after half an hour.

    by_received, one shard ──────────────────────────────────────► received_at
       read twice           │ read once           │ not read yet
                            ▲ second cursor       ▲ first cursor            ▲ now

A cursor is the time up to which a shard was read; one row stores all of them. The shard that is
furthest behind is read first, and a pass that runs out of time continues in the next one. While the
backlog of a lane is older than the second look, that lane has a second cursor of its own, which
follows the oldest message of the lane.

    pk = reconciler    sk = cursors    first, second: epoch ms by shard; lanes: the same by lane
"""

from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Final

from webhook_inbox.domain.errors import Unavailable
from webhook_inbox.domain.manifest import Manifest
from webhook_inbox.domain.ports import Change, Key, Table
from webhook_inbox.domain.timestamps import from_ms, to_ms
from webhook_inbox.ledger.queries import index_pages
from webhook_inbox.ledger.schema import BY_RECEIVED, EVENT_LIFE, RECEIVED_SHARDS, received_buckets
from webhook_inbox.queue.lanes import Backlogs
from webhook_inbox.reconciler.unsent import UnsentRuns

# Younger events may still be in flight, and the index lags.
FIRST_LOOK: Final = timedelta(minutes=3)
# Later than a lost worker's lease, and later than any lag of the index.
SECOND_LOOK: Final = timedelta(minutes=30)
# The second look is not urgent: reading longer spans less often saves queries.
SECOND_STEP: Final = timedelta(minutes=5)
# The first pass of a deployment starts this far back.
FIRST_REACH: Final = timedelta(hours=24)
# Index entries in a call; their runs are read in about ten calls.
PAGE: Final = 1000

CURSORS: Final = Key("reconciler", "cursors")

# Epoch ms by shard.
Positions = dict[str, int]


class ReceivedEvents:
    """One pass over the events that were received since the last one."""

    def __init__(
        self,
        *,
        manifest: Manifest,
        table: Table,
        backlogs: Backlogs,
        unsent: UnsentRuns,
        now: datetime,
        out_of_time: Callable[[], bool],
    ) -> None:
        self._manifest = manifest
        self._table = table
        self._backlogs = backlogs
        self._unsent = unsent
        self._now = now
        self._out_of_time = out_of_time

    def look(self) -> None:
        """Reads on from every cursor until its end or until time is up.

        Raises:
            Unavailable: so many calls failed that the service seems to be down.
        """
        row = self._table.get(CURSORS) or {}
        start = {str(shard): to_ms(self._now - FIRST_REACH) for shard in range(RECEIVED_SHARDS)}
        first, second = dict(row.get("first", start)), dict(row.get("second", start))
        lanes = {lane: Positions(positions) for lane, positions in row.get("lanes", {}).items()}
        try:
            self._read_on(first, self._now - FIRST_LOOK, self._manifest.lanes, second=False)
            self._look_second(second, lanes)
        finally:
            # Unsaved progress is only read again.
            with suppress(Unavailable):
                change = Change(set={"first": first, "second": second, "lanes": lanes})
                self._table.update(CURSORS, change)

    def _look_second(self, main: Positions, lanes: dict[str, Positions]) -> None:
        for lane in lanes.keys() - set(self._manifest.lanes):
            # Its runs belong to other lanes now.
            main.update({shard: min(main[shard], at) for shard, at in lanes.pop(lane).items()})
        end = self._now - SECOND_LOOK
        is_due = end - from_ms(min(main.values())) >= SECOND_STEP
        if not is_due and not lanes:
            return
        ends = {lane: self._end_of(lane) for lane in self._manifest.lanes}
        for lane, until in ends.items():
            if until < end:
                lanes.setdefault(lane, dict(main))
        if is_due:
            self._read_on(main, end, [n for n in ends if n not in lanes], second=True)
        for lane in list(lanes):
            until = min(ends[lane], from_ms(min(main.values())))
            self._read_on(lanes[lane], until, [lane], second=True)
            if all(lanes[lane][shard] >= at for shard, at in main.items()):
                del lanes[lane]

    def _end_of(self, lane: str) -> datetime:
        """Returns the time up to which a run without a row is not in the lane's backlog."""
        explained = self._backlogs.explained_age(lane)
        if explained > EVENT_LIFE:
            return from_ms(0)
        return self._now - max(SECOND_LOOK, explained)

    def _read_on(
        self, positions: Positions, end: datetime, lanes: Sequence[str], *, second: bool
    ) -> None:
        for shard in sorted(positions, key=lambda shard: positions[shard]):
            if positions[shard] < to_ms(end):
                self._read_shard(positions, shard, end, lanes, second=second)

    def _read_shard(
        self, positions: Positions, shard: str, end: datetime, lanes: Sequence[str], *, second: bool
    ) -> None:
        while positions[shard] < to_ms(end):
            low = from_ms(positions[shard] + 1)
            next_hour = low.replace(minute=0, second=0, microsecond=0) + timedelta(hours=1)
            high = min(to_ms(end), to_ms(next_hour) - 1)
            (bucket,) = received_buckets(low, low, shards=[int(shard)])
            for page in index_pages(
                self._table, BY_RECEIVED, bucket, low=to_ms(low), high=high, limit=PAGE
            ):
                # A page with a failed call is read again by the next pass.
                if self._out_of_time() or not self._unsent.look(page.items, lanes, second=second):
                    return
                if page.next is not None and page.items:
                    # Another event of the same millisecond may be on the next page.
                    positions[shard] = max(positions[shard], page.items[-1]["received_at"] - 1)
            positions[shard] = high
