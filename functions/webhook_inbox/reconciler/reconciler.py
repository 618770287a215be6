"""Reconciler: finds what fell between two calls and sends it, watches it or gives it up.

    every minute      runs whose time in the `by_due` index has come, and those of handlers
                      that were resumed lately
    every 5 minutes   events of the last 3 to 60 minutes: runs without a row are sent
    every hour        events of five older hours, each read whole; copies in the DLQs

Every write is conditional on the row being as it was read, so two reconcilers may overlap. It
never infers a death from time alone: a backlog is not a death.
"""

from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from typing import Final

from webhook_inbox.domain.manifest import Manifest
from webhook_inbox.domain.ports import Clock, Item, Queue, Table
from webhook_inbox.domain.timestamps import to_ms
from webhook_inbox.ledger.pauses import RECHECK, HandlerPause, controls
from webhook_inbox.ledger.queries import Ledger
from webhook_inbox.ledger.schema import DUE_SHARDS, RECEIVED_SHARDS
from webhook_inbox.queue import dead_letters
from webhook_inbox.queue.lanes import Backlogs, Lanes
from webhook_inbox.reconciler.overdue import OverdueRuns
from webhook_inbox.reconciler.report import Action, ReconcilerReport
from webhook_inbox.reconciler.unsent import UnsentRuns

# Younger events are still on their way, and the index lags; older ones the slow sweep sees.
WINDOW: Final = (timedelta(minutes=60), timedelta(minutes=3))
# What the slow sweep looks at, each age in a minute of its own: soon after the window, then ever
# more rarely, and last past the queue's retention of 7 days, when no message can be left.
SWEEPS: Final = {
    7: timedelta(hours=1),
    17: timedelta(hours=6),
    27: timedelta(hours=24),
    47: timedelta(hours=72),
    57: timedelta(hours=7 * 24 + 1),
}
AN_HOUR: Final = timedelta(hours=1)
DLQ_MINUTE: Final = 37
# Seconds between two passes over the window.
ROTATION: Final = 300
# What is left of the invocation for its report.
STOP_MARGIN: Final = timedelta(seconds=10)


class Reconciler:
    """The reconciling use case."""

    def __init__(
        self,
        *,
        manifest: Manifest,
        ledger: Ledger,
        table: Table,
        lanes: Lanes,
        dlqs: Mapping[str, Queue],
        clock: Clock,
    ) -> None:
        self._manifest = manifest
        self._ledger = ledger
        self._table = table
        self._lanes = lanes
        self._dlqs = dlqs
        self._clock = clock

    def run(self, *, deadline: datetime) -> ReconcilerReport:
        """Does what is due in the minute that it is called in.

        Raises:
            Unavailable: so many calls failed that the rest was left for the next minute.
        """
        now, report, backlogs = self._clock.now(), ReconcilerReport(), Backlogs(self._lanes)
        # What is rarely due goes first: a minute in which it takes all the time is followed by
        # minutes that belong to the index.
        if now.minute % 5 == 0:
            self._look_at_received((now - WINDOW[0], now - WINDOW[1]), report, backlogs, deadline)
        if now.minute in SWEEPS:
            end = now - SWEEPS[now.minute]
            self._look_at_received((end - AN_HOUR, end), report, backlogs, deadline, thorough=True)
        if now.minute == DLQ_MINUTE:
            self._sweep_dead_letters(report, deadline)
        self._read_due_index(now, report, backlogs, deadline)
        return report

    def _read_due_index(
        self, now: datetime, report: ReconcilerReport, backlogs: Backlogs, deadline: datetime
    ) -> None:
        overdue = OverdueRuns(
            manifest=self._manifest,
            table=self._table,
            lanes=self._lanes,
            backlogs=backlogs,
            controls=self._controls(report),
            report=report,
            now=now,
        )
        for row in self._in_due_index(now, 0, to_ms(now)):
            if self._stop(report, deadline):
                return
            report.attempt(overdue.look, row)
        if not overdue.resumes:
            return
        # What waits for a resumption is looked at within this time, so none lies further ahead.
        for row in self._in_due_index(now, to_ms(now) + 1, to_ms(now + RECHECK)):
            if self._stop(report, deadline) or not overdue.resumes:
                return
            report.attempt(overdue.resume, row)

    def _in_due_index(self, now: datetime, low: int, high: int) -> Iterator[Item]:
        """Yields the runs that the index lists between two times.

        Another shard comes first each minute, so that one that takes all the time starves no
        other.
        """
        for place in range(DUE_SHARDS):
            shard = (now.minute + place) % DUE_SHARDS
            for page in self._ledger.due(shard, low=low, high=high):
                yield from (row for _, row in page)

    def _controls(self, report: ReconcilerReport) -> Mapping[str, HandlerPause]:
        found: dict[str, HandlerPause] = {}
        # Without them a paused handler's runs are woken in vain, and parked again.
        report.attempt(lambda _: found.update(controls(self._table)), None)
        return found

    def _look_at_received(
        self,
        span: tuple[datetime, datetime],
        report: ReconcilerReport,
        backlogs: Backlogs,
        deadline: datetime,
        *,
        thorough: bool = False,
    ) -> None:
        adoption = UnsentRuns(
            manifest=self._manifest,
            ledger=self._ledger,
            table=self._table,
            lanes=self._lanes,
            backlogs=backlogs,
            report=report,
            now=self._clock.now(),
        )
        # The oldest hour first, since its events leave the window next, and another shard first
        # each time, so that none is always the one for which no time is left.
        turn = int(self._clock.now().timestamp()) // ROTATION
        for page in self._ledger.received(*span, first_shard=turn % RECEIVED_SHARDS):
            if self._stop(report, deadline):
                return
            adoption.look(page, thorough=thorough)

    def _sweep_dead_letters(self, report: ReconcilerReport, deadline: datetime) -> None:
        for queue in self._dlqs.values():
            if self._stop(report, deadline):
                return
            removed = dead_letters.sweep(queue, self._table, clock=self._clock, deadline=deadline)
            report.add(Action.DLQ_REMOVED, removed)

    def _stop(self, report: ReconcilerReport, deadline: datetime) -> bool:
        if self._clock.now() > deadline - STOP_MARGIN:
            report.complete = False
        return not report.complete
