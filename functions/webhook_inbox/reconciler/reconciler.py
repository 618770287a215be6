"""Reconciler: finds lost and overdue runs and sends them, lists them or gives them up.

    every minute      runs whose `due_at` in the `by_due` index has passed, and runs of handlers
                      that were resumed lately (due_index)
    every 5 minutes   events of the last 3 to 60 minutes: runs without a row are sent
    every hour        events of five older hours, each read whole; copies in the DLQs

Every write is conditional on the row as it was read, so two reconcilers may overlap. Time alone
never gives a run up, since its message may wait in a backlog.
"""

from collections.abc import Mapping
from datetime import datetime, timedelta
from functools import partial
from typing import Final

from webhook_inbox.domain.manifest import Manifest
from webhook_inbox.domain.ports import IN_TURN, Clock, Parallel, Queue, Table
from webhook_inbox.ledger import due_handlers
from webhook_inbox.ledger.pauses import HandlerPause, controls
from webhook_inbox.ledger.queries import Ledger
from webhook_inbox.ledger.schema import RECEIVED_SHARDS
from webhook_inbox.queue import dead_letters
from webhook_inbox.queue.lanes import Backlogs, Lanes
from webhook_inbox.reconciler.due_index import DRAIN, Budgets, DueIndexPass
from webhook_inbox.reconciler.overdue import OverdueRuns
from webhook_inbox.reconciler.report import Action, ReconcilerReport
from webhook_inbox.reconciler.unsent import UnsentRuns

# Younger events may still be in flight, and the index lags; the slow sweep reads older ones.
WINDOW: Final = (timedelta(minutes=60), timedelta(minutes=3))
# The slow sweep reads an hour of each age, in this minute of the hour. The last age is past a
# standard queue's retention of 7 days; a FIFO queue keeps messages for 14.
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
# The time that the invocation reserves for its report.
STOP_MARGIN: Final = timedelta(seconds=10)
# The longest pass over the due index. The next pass has its own budgets, so they must not overlap.
DUE_TIME: Final = timedelta(seconds=50)


class Reconciler:
    """The reconciler use case.

    Args:
        parallel: makes the calls about the runs of one page.
        drain: the runs of a handler to send in one pass where no destination's rate decides.
    """

    def __init__(
        self,
        *,
        manifest: Manifest,
        ledger: Ledger,
        table: Table,
        lanes: Lanes,
        dlqs: Mapping[str, Queue],
        clock: Clock,
        parallel: Parallel = IN_TURN,
        drain: int = DRAIN,
    ) -> None:
        self._manifest = manifest
        self._ledger = ledger
        self._table = table
        self._lanes = lanes
        self._dlqs = dlqs
        self._clock = clock
        self._parallel = parallel
        self._drain = drain

    def run(self, *, deadline: datetime) -> ReconcilerReport:
        """Runs the passes that are due in this minute.

        Raises:
            Unavailable: so many calls failed that the rest is left for the next minute.
        """
        now, report, backlogs = self._clock.now(), ReconcilerReport(), Backlogs(self._lanes)
        # The rare passes go first: if they use all the time, the next minutes are free for the
        # due index.
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
        end = min(deadline, self._clock.now() + DUE_TIME + STOP_MARGIN)
        stop = partial(self._stop, report, end)
        overdue = OverdueRuns(
            manifest=self._manifest,
            table=self._table,
            lanes=self._lanes,
            backlogs=backlogs,
            controls=self._controls(report),
            report=report,
            parallel=self._parallel,
            stop=stop,
            now=now,
        )
        DueIndexPass(
            ledger=self._ledger,
            overdue=overdue,
            budgets=Budgets(self._manifest, drain=self._drain),
            report=report,
            parallel=self._parallel,
            stop=stop,
            now=now,
        ).run(self._handlers(report, now))

    def _handlers(self, report: ReconcilerReport, now: datetime) -> set[str]:
        """Returns the deployed handlers, and those that are gone and may have runs."""
        deployed = {*self._manifest.handlers}
        found: set[str] = {*deployed}
        report.attempt(
            lambda _: found.update(due_handlers.deploy(self._table, deployed, now=now)), None
        )
        return found

    def _controls(self, report: ReconcilerReport) -> Mapping[str, HandlerPause]:
        found: dict[str, HandlerPause] = {}
        # Without them a paused handler's runs are sent and parked again.
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
        # The oldest hour goes first, since its events leave the window next; the first shard
        # rotates, so that no shard is always the one that runs out of time.
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
