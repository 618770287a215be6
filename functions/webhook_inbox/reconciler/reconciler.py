"""Reconciler: finds lost and overdue runs and sends them, lists them or gives them up.

    every minute      runs whose `due_at` in the `by_due` index has passed, and runs of handlers
                      that were resumed lately (due_index)
    every minute      events of 3 minutes ago, and again of half an hour ago: runs without a row
                      are sent (received)
    every hour        copies in the DLQs
    every 5 minutes   payloads whose source's retention has passed: erased (retention)

Every write is conditional on the row as it was read, so two reconcilers may overlap. Time alone
never gives a run up, since its message may wait in a backlog.
"""

from contextlib import suppress
from datetime import datetime, timedelta
from functools import partial
from typing import Final

from webhook_inbox.domain.conditions import Absent, Less, either
from webhook_inbox.domain.errors import ConditionFailed, Unavailable
from webhook_inbox.domain.manifest import Manifest
from webhook_inbox.domain.ports import Change, Key, Ports
from webhook_inbox.domain.timestamps import to_ms
from webhook_inbox.ledger import due_handlers
from webhook_inbox.ledger.pauses import Controls, Pause, Subject, controls
from webhook_inbox.queue import dead_letters
from webhook_inbox.queue.lanes import Backlogs, Lanes
from webhook_inbox.reconciler.due_index import DRAIN, Budgets, DueIndexPass
from webhook_inbox.reconciler.overdue import OverdueRuns
from webhook_inbox.reconciler.received import ReceivedEvents
from webhook_inbox.reconciler.report import Action, ReconcilerReport
from webhook_inbox.reconciler.retention import ExpiredPayloads
from webhook_inbox.reconciler.unsent import UnsentRuns

# The row that stores when the DLQs were swept last.
SWEEPS: Final = Key("reconciler", "sweeps")
SWEEP_INTERVAL: Final = timedelta(hours=1)
# The time that the invocation reserves for its report.
STOP_MARGIN: Final = timedelta(seconds=10)
# The longest pass over the due index. The next pass has its own budgets, so they must not overlap.
DUE_TIME: Final = timedelta(seconds=50)
# The longest erasure of payloads, which nothing waits for.
ERASE_TIME: Final = timedelta(seconds=20)


class Reconciler:
    """The reconciler use case.

    Args:
        manifest: the deployed manifest.
        ports: its `parallel` makes the calls about the runs of one page.
        drain: the runs of a handler to send in one pass where no destination's rate decides.
    """

    def __init__(self, manifest: Manifest, ports: Ports, *, drain: int = DRAIN) -> None:
        self._manifest = manifest
        self._ports = ports
        self._table = ports.table
        self._dlqs = ports.dlqs
        self._clock = ports.clock
        self._drain = drain

    def run(self, *, deadline: datetime) -> ReconcilerReport:
        """Runs the passes that are due in this minute.

        Raises:
            Unavailable: so many calls failed that the rest is left for the next minute.
        """
        now, report = self._clock.now(), ReconcilerReport()
        backlogs = Backlogs(Lanes(self._ports.queues))
        # Half of the time, so that a long list of due runs does not delay the look at events.
        self._read_due_index(now, report, backlogs, now + (deadline - now) / 2)
        self._look_at_received(report, backlogs, deadline)
        self._sweep_dead_letters(now, report, deadline)
        self._erase_payloads(report, deadline)
        return report

    def _read_due_index(
        self, now: datetime, report: ReconcilerReport, backlogs: Backlogs, deadline: datetime
    ) -> None:
        end = min(deadline, self._clock.now() + DUE_TIME + STOP_MARGIN)
        stop = partial(self._stop, report, end)
        overdue = OverdueRuns(
            self._manifest,
            self._ports,
            backlogs=backlogs,
            controls=self._controls(report),
            report=report,
            stop=stop,
            now=now,
        )
        DueIndexPass(
            self._ports,
            overdue=overdue,
            budgets=Budgets(self._manifest, drain=self._drain),
            report=report,
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

    def _controls(self, report: ReconcilerReport) -> Controls:
        found: dict[tuple[Subject, str], Pause] = {}
        # Without them a paused handler's runs are sent and parked again.
        report.attempt(lambda _: found.update(controls(self._table)), None)
        return found

    def _look_at_received(
        self, report: ReconcilerReport, backlogs: Backlogs, deadline: datetime
    ) -> None:
        now = self._clock.now()
        unsent = UnsentRuns(self._manifest, self._ports, backlogs=backlogs, report=report, now=now)
        ReceivedEvents(
            manifest=self._manifest,
            table=self._table,
            backlogs=backlogs,
            unsent=unsent,
            now=now,
            out_of_time=lambda: self._stop(report, deadline),
        ).look()

    def _sweep_dead_letters(
        self, now: datetime, report: ReconcilerReport, deadline: datetime
    ) -> None:
        last = now - SWEEP_INTERVAL
        due = either(Absent("swept_at"), Less("swept_at", to_ms(last) + 1))
        try:
            # The time of the start, so that the next pass does not begin the same sweep.
            self._table.update(SWEEPS, Change(set={"swept_at": to_ms(now)}), when=due)
        except ConditionFailed:
            return
        finished = False
        try:
            finished = self._sweep(report, deadline)
        finally:
            if not finished:
                # The next pass continues. If this fails too, the sweep continues in an hour.
                with suppress(Unavailable):
                    self._table.update(SWEEPS, Change(set={"swept_at": 0}))

    def _sweep(self, report: ReconcilerReport, deadline: datetime) -> bool:
        """Sweeps the DLQs; returns False if another sweep would find more to delete."""
        for queue in self._dlqs.values():
            if self._stop(report, deadline):
                return False
            swept = dead_letters.sweep(
                queue, self._table, clock=self._clock, deadline=deadline - STOP_MARGIN
            )
            if swept.removed:
                report.add(Action.DLQ_REMOVED, swept.removed)
            found = filter(None, (report.oldest_dead_letter, swept.oldest))
            report.oldest_dead_letter = min(found, default=None)
            # A DLQ that is full of dead runs is not read again and again.
            if swept.removed and not swept.finished:
                return False
        return True

    def _erase_payloads(self, report: ReconcilerReport, deadline: datetime) -> None:
        now = self._clock.now()
        # A backlog of payloads does not make a pass incomplete: it raises no alarm.
        end = min(deadline - STOP_MARGIN, now + ERASE_TIME)
        ExpiredPayloads(
            self._manifest,
            self._ports,
            report=report,
            out_of_time=lambda: self._clock.now() > end,
            now=now,
        ).erase()

    def _stop(self, report: ReconcilerReport, deadline: datetime) -> bool:
        stops = self._clock.now() > deadline - STOP_MARGIN
        if stops:
            report.complete = False
        return stops
