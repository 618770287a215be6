"""Handles a run whose `due_at` in the `by_due` index has passed."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Final

from webhook_inbox.domain.conditions import Condition, Equals, every
from webhook_inbox.domain.errors import ConditionFailed
from webhook_inbox.domain.manifest import Manifest
from webhook_inbox.domain.model import Run, Status
from webhook_inbox.domain.ports import Change, Item, Table
from webhook_inbox.domain.timestamps import EPOCH, to_ms
from webhook_inbox.ledger.deadlines import (
    RESENDS,
    event_end,
    expiry_warning_at,
    next_resend,
    overdue_at,
)
from webhook_inbox.ledger.deferral import resume
from webhook_inbox.ledger.lease import CLOCK_SKEW
from webhook_inbox.ledger.pauses import RECHECK, RESUMING, RESUMPTION, HandlerPause
from webhook_inbox.ledger.schema import key_of_run, run_from, transition
from webhook_inbox.ledger.settle import as_seen, give_up
from webhook_inbox.queue.lanes import Backlogs, Lanes
from webhook_inbox.queue.line import TURN, TURN_CHECK, Line, run_ended
from webhook_inbox.queue.message import RunMessage
from webhook_inbox.reconciler.report import Action, ReconcilerReport

POSTPONED: Final = timedelta(minutes=15)
# The limit of resumed runs, and of re-sent runs, in one pass: 20 per second over a minute.
DRAIN: Final = 1200
A_DAY: Final = timedelta(days=1)


class OverdueRuns:
    """Handles the runs of one pass; `controls` are the pauses that operators have set."""

    def __init__(
        self,
        *,
        manifest: Manifest,
        table: Table,
        lanes: Lanes,
        backlogs: Backlogs,
        controls: Mapping[str, HandlerPause],
        report: ReconcilerReport,
        now: datetime,
    ) -> None:
        self._manifest = manifest
        self._table = table
        self._lanes = lanes
        self._report = report
        self._now = now
        self._backlogs = backlogs
        self._paused = {name for name, control in controls.items() if control.paused}
        since = now - RESUMING
        self._resumed = {n for n, control in controls.items() if control.was_resumed(since=since)}

    @property
    def resumes(self) -> bool:
        """True if a handler was resumed lately and this pass can resume more runs."""
        return bool(self._resumed) and self._report.count(Action.RESUMED) < DRAIN

    def look(self, row: Item) -> None:
        """Handles one run; every write is conditional on the row as it was read.

        Raises:
            Unavailable: the ledger or the queue failed.
        """
        run = run_from(row)
        if "due_at" not in row or row["due_at"] > to_ms(self._now):
            return  # The index is eventually consistent: the run has changed.
        if run.status is Status.DEAD_LETTER:
            return  # Listed until it expires.
        try:
            self._act(run, _unchanged(run, row))
        except ConditionFailed:
            self._report.add(Action.MOVED_ON)

    def resume(self, row: Item) -> None:
        """Resumes a run before its due time if its handler was resumed lately.

        Raises:
            Unavailable: the ledger or the queue failed.
        """
        run = run_from(row)
        waits = run.parked and run.waits_for == RESUMPTION and run.handler in self._resumed
        if not waits or "due_at" not in row:
            return
        try:
            self._resume(run, _unchanged(run, row))
        except ConditionFailed:
            self._report.add(Action.MOVED_ON)

    def _act(self, run: Run, unchanged: Condition) -> None:
        if self._leased(run):
            self._move(run, overdue_at(run.claimed_until or self._now), unchanged)
            return
        if run.expires_at is not None and event_end(run.expires_at) <= self._now:
            self._give_up(run, "expired: it waited until its event's end", Action.EXPIRED)
            return
        if run.expires_at is not None and expiry_warning_at(run.expires_at) <= self._now:
            self._report.add(Action.LAST_CALL)
        if run.status is Status.HELD:
            self._move(run, self._now + A_DAY, unchanged)
        elif run.parked:
            self._look_at_parked(run, unchanged)
        else:
            self._resend(run, unchanged)

    def _leased(self, run: Run) -> bool:
        if run.status is not Status.PROCESSING or run.claimed_until is None:
            return False
        return run.claimed_until >= self._now - CLOCK_SKEW

    def _look_at_parked(self, run: Run, unchanged: Condition) -> None:
        due = run.next_attempt_at or self._now
        if due > self._now:
            self._move(run, min(due, self._now + A_DAY), unchanged)
        elif run.waits_for == TURN and not self._has_turn(run):
            self._move(run, self._now + TURN_CHECK, unchanged)
        elif run.handler in self._paused:
            self._wait_on(run, unchanged)
        else:
            self._resume(run, unchanged)

    def _has_turn(self, run: Run) -> bool:
        spec = self._manifest.handlers.get(run.handler)
        if spec is None or not spec.serial:
            return True  # Its handler keeps no order any more.
        line = Line(self._table, spec.name, run.ordering_key, blocks=spec.blocks)
        head = line.head(self._now)
        return head is None or head.event_id == run.event_id

    def _wait_on(self, run: Run, unchanged: Condition) -> None:
        # Sending it would only park it again, at the cost of a message and two writes per run.
        again = to_ms(self._now + RECHECK)
        change = Change(set={"waits_for": RESUMPTION, "next_attempt_at": again, "due_at": again})
        self._update(run, change, unchanged)
        self._report.add(Action.POSTPONED)

    def _resume(self, run: Run, unchanged: Condition) -> None:
        if self._report.count(Action.RESUMED) >= DRAIN:
            return
        # The time of a pause, or behind other runs, does not count towards the run's maximum age.
        waited = run.waits_for in {RESUMPTION, TURN}
        resumed = {"resumed_at": to_ms(self._now)} if waited else {}
        resume(self._table, run, unchanged=unchanged, now=self._now, values=resumed)
        self._send(run)
        self._report.add(Action.RESUMED)

    def _resend(self, run: Run, unchanged: Condition) -> None:
        lane = self._manifest.lane_of(run.handler)
        # In a FIFO lane the backlog may belong to one blocked ordering key, so it does not postpone
        # the runs of others; a surplus message there is dropped in its turn.
        fifo = self._lanes.queue(lane).fifo
        large = self._backlogs.is_large(lane) and not (fifo and run.resends == 0)
        if large:
            self._move(run, self._now + POSTPONED, unchanged)
            return
        oldest = None if fifo else self._backlogs.of(lane).oldest
        missed = overdue_at(_expected(run)) + (oldest or timedelta(0))
        if run.resends == 0 and missed > self._now:
            self._move(run, missed, unchanged)
            return
        if run.resends >= len(RESENDS) and not fifo:
            self._give_up(run, f"lost: sent {run.resends} times, never received", Action.LOST)
            return
        if self._report.count(Action.RESENT) >= DRAIN:
            return
        sent = run.resends + 1
        change = Change(
            set={"due_at": to_ms(next_resend(self._now, sent)), "resends": sent},
        )
        self._update(run, change, unchanged)
        self._send(run)
        self._report.add(Action.RESENT)

    def _give_up(self, run: Run, why: str, action: Action) -> None:
        reason = f"{why}; last error: {run.last_error}" if run.last_error else why
        gone = give_up(self._table, run, error=reason, now=self._now, sent_at=self._now)
        self._report.add(action if gone else Action.MOVED_ON)
        if gone:
            run_ended(self._table, run, now=self._now)

    def _move(self, run: Run, until: datetime, unchanged: Condition) -> None:
        self._update(run, Change(set={"due_at": to_ms(until)}), unchanged)
        self._report.add(Action.POSTPONED)

    def _update(self, run: Run, change: Change, unchanged: Condition) -> None:
        transition(self._table, key_of_run(run), change, when=unchanged)

    def _send(self, run: Run) -> None:
        # The generation stays the same, so a message that is still in the queue stays valid.
        self._lanes.send([(self._manifest.lane_of(run.handler), RunMessage.of(run))])


def _unchanged(run: Run, row: Item) -> Condition:
    return every(as_seen(run), Equals("due_at", row["due_at"]))


def _expected(run: Run) -> datetime:
    """Returns the time by which a message of the run should have had an effect."""
    if run.status is Status.PROCESSING and run.claimed_until is not None:
        return run.claimed_until
    if run.next_attempt_at is not None:
        return run.next_attempt_at
    return run.last_at or run.first_at or EPOCH
