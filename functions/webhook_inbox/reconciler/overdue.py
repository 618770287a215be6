"""Handles a run whose `due_at` in the `by_due` index has passed."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from typing import Final

from webhook_inbox.domain.conditions import Condition, Equals, every
from webhook_inbox.domain.death import DeathCause
from webhook_inbox.domain.errors import ConditionFailed, Unavailable
from webhook_inbox.domain.manifest import Manifest
from webhook_inbox.domain.model import RequestState, Run, Status
from webhook_inbox.domain.ports import Change, Item, Key, Ports
from webhook_inbox.domain.timestamps import EPOCH, from_ms, to_ms
from webhook_inbox.ledger.deadlines import (
    RESENDS,
    event_end,
    expiry_warning_at,
    held_look_at,
    next_resend,
    overdue_at,
)
from webhook_inbox.ledger.deferral import resume, wake
from webhook_inbox.ledger.lease import CLOCK_SKEW
from webhook_inbox.ledger.pauses import (
    RECHECK,
    RESUMING,
    RESUMPTION,
    RESUMPTIONS,
    TENANT_RESUMPTION,
    Controls,
    Subject,
)
from webhook_inbox.ledger.schema import key_of_run, run_from, transition
from webhook_inbox.ledger.settle import as_seen, give_up
from webhook_inbox.queue.lanes import Backlogs, Lanes
from webhook_inbox.queue.line import TURN, TURN_CHECK, Line, run_ended
from webhook_inbox.queue.message import RunMessage
from webhook_inbox.reconciler.report import Action, ReconcilerReport

A_DAY: Final = timedelta(days=1)
# The messages of one call of SQS.
BATCH: Final = 10


@dataclass(frozen=True, slots=True)
class Handled:
    """The result of one look at a run; `message` is to be sent, `dead` was given up."""

    action: Action | None = None
    message: RunMessage | None = None
    dead: Run | None = None
    last_call: bool = False
    error: Exception | None = None


NOTHING: Final = Handled()


class OverdueRuns:
    """Handles the runs of one pass; `controls` are the pauses that operators have set."""

    def __init__(
        self,
        manifest: Manifest,
        ports: Ports,
        *,
        backlogs: Backlogs,
        controls: Controls,
        report: ReconcilerReport,
        stop: Callable[[], bool],
        now: datetime,
    ) -> None:
        self._manifest = manifest
        self._table = ports.table
        self._lanes = Lanes(ports.queues)
        self._report = report
        self._now = now
        self._backlogs = backlogs
        self._parallel = ports.parallel
        self._stop = stop
        self._paused = {key for key, control in controls.items() if control.paused}
        since = now - RESUMING
        self._resumed = {key for key, it in controls.items() if it.was_resumed(since=since)}

    def may_resume(self, handler: str) -> bool:
        """Tells whether the handler, or a tenant that it may have runs of, was resumed lately."""
        if (Subject.HANDLER, handler) in self._paused:
            return False
        tenants = any(subject is Subject.TENANT for subject, _ in self._resumed)
        return tenants or (Subject.HANDLER, handler) in self._resumed

    def explained(self, handler: str) -> timedelta:
        """Returns how long a message may be late because of the backlog of its lane.

        At most a day: a run is looked at that often, whatever it waits for.

        Raises:
            Unavailable: the queue failed.
        """
        lane = self._manifest.lane_of(handler)
        return min(self._backlogs.explained_age(lane), A_DAY)

    def look(self, rows: Sequence[Item]) -> int:
        """Handles due runs and returns how many were sent.

        Every write is conditional on the row as it was read. The messages follow the writes: after
        a crash between the two, the runs are sent like any overdue one.

        Raises:
            Unavailable: so many calls failed that the service seems to be down.
        """
        return self._handle(self._look, rows)

    def resume(self, rows: Sequence[Item]) -> int:
        """Resumes runs before their due time if they wait for a resumption; see `look`."""
        return self._handle(self._resume_early, rows)

    def _handle(self, work: Callable[[Item], Handled], rows: Sequence[Item]) -> int:
        handled = self._parallel.map(partial(self._caught, work), rows)
        messages = [each.message for each in handled if each.message is not None]
        # Before an error can end the pass: a run whose message is not sent waits for a resend.
        failures = self._send(messages)
        for each in handled:
            self._report.attempt(self._count, each)
        for error in failures:
            self._report.attempt(_raised, error)
        return len(messages)

    def _caught(self, work: Callable[[Item], Handled], row: Item) -> Handled:
        """Returns a run's error instead of raising it, since others are handled meanwhile."""
        if self._stop():
            return NOTHING
        try:
            return work(row)
        except ConditionFailed:
            return Handled(Action.MOVED_ON)
        except Exception as error:  # noqa: BLE001 - an unreadable row: reported and passed over
            return Handled(error=error)

    def _count(self, handled: Handled) -> None:
        if handled.error is not None:
            raise handled.error
        if handled.last_call:
            self._report.add(Action.LAST_CALL)
        if handled.action is not None:
            self._report.add(handled.action)
        if handled.dead is not None:
            self._report.dead.append(handled.dead)

    def _send(self, messages: Sequence[RunMessage]) -> list[Exception]:
        """Sends messages of one handler and returns the errors."""
        if not messages:
            return []
        lane = self._manifest.lane_of(messages[0].handler)
        # In a FIFO lane the messages of one call keep their order.
        size = len(messages) if self._lanes.queue(lane).fifo else BATCH
        batches = [messages[start : start + size] for start in range(0, len(messages), size)]
        sent = self._parallel.map(partial(self._send_batch, lane), batches)
        return [error for error in sent if error is not None]

    def _send_batch(self, lane: str, batch: Sequence[RunMessage]) -> Exception | None:
        try:
            self._lanes.send([(lane, message) for message in batch])
        except Unavailable as error:
            return error
        return None

    def _look(self, row: Item) -> Handled:
        run = run_from(row)
        if "due_at" not in row or row["due_at"] > to_ms(self._now):
            return NOTHING  # The index is eventually consistent: the run has changed.
        return self._act(run, from_ms(row["due_at"]), _unchanged(run, row))

    def _resume_early(self, row: Item) -> Handled:
        run = run_from(row)
        waits = run.parked and run.waits_for in RESUMPTIONS and "due_at" in row
        if not waits or self._resumed.isdisjoint(_subjects(run)) or self._pause_of(run):
            return NOTHING
        return self._resume(run, _unchanged(run, row))

    def _act(self, run: Run, due_at: datetime, unchanged: Condition) -> Handled:
        if self._leased(run):
            return self._move(run, overdue_at(run.claimed_until or self._now), unchanged)
        if run.expires_at is not None and event_end(run.expires_at) <= self._now:
            return self._give_up(run, DeathCause.EVENT_EXPIRED, "it waited until its event's end")
        last_call = run.expires_at is not None and expiry_warning_at(run.expires_at) <= self._now
        if run.status is Status.HELD:
            done = self._look_at_held(run, unchanged)
        elif run.parked:
            done = self._look_at_parked(run, unchanged)
        else:
            done = self._resend(run, due_at, unchanged)
        return replace(done, last_call=last_call)

    def _leased(self, run: Run) -> bool:
        if run.status is not Status.PROCESSING or run.claimed_until is None:
            return False
        return run.claimed_until >= self._now - CLOCK_SKEW

    def _look_at_held(self, run: Run, unchanged: Condition) -> Handled:
        """Wakes a run whose request is decided, or is to be announced, escalated or ended."""
        if "wake_at" not in run.held:
            return self._move(run, self._now + A_DAY, unchanged)
        if self._pause_of(run):
            return self._move(run, self._now + RECHECK, unchanged)
        if from_ms(run.held["wake_at"]) > self._now and not self._is_decided(run):
            again = held_look_at(run.held, self._now, self._now + A_DAY)
            return self._move(run, again, unchanged)
        woken = wake(self._table, run, unchanged=unchanged, now=self._now)
        return Handled(Action.RESUMED, RunMessage.of(woken))

    def _is_decided(self, run: Run) -> bool:
        request = self._table.get(Key(key_of_run(run).pk, run.held["request"]))
        return request is None or request["state"] != RequestState.OPEN

    def _look_at_parked(self, run: Run, unchanged: Condition) -> Handled:
        due = run.next_attempt_at or self._now
        if due > self._now:
            return self._move(run, min(due, self._now + A_DAY), unchanged)
        if run.waits_for == TURN and not self._has_turn(run):
            return self._move(run, self._now + TURN_CHECK, unchanged)
        if pause := self._pause_of(run):
            return self._wait_on(run, pause, unchanged)
        return self._resume(run, unchanged)

    def _has_turn(self, run: Run) -> bool:
        spec = self._manifest.handler(run.handler)
        if spec is None or not spec.serial:
            return True  # Its handler keeps no order any more.
        line = Line(self._table, spec.name, run.ordering_key, blocks=spec.blocks)
        head = line.head(self._now)
        return head is None or head.event_id == run.event_id

    def _pause_of(self, run: Run) -> str:
        """Returns the resumption that a run waits for, "" if neither subject of it is paused."""
        handler, tenant = _subjects(run)
        if handler in self._paused:
            return RESUMPTION
        return TENANT_RESUMPTION if tenant in self._paused else ""

    def _wait_on(self, run: Run, pause: str, unchanged: Condition) -> Handled:
        # Sending it would only park it again, at the cost of a message and two writes per run.
        again = to_ms(self._now + RECHECK)
        change = Change(set={"waits_for": pause, "next_attempt_at": again, "due_at": again})
        self._update(run, change, unchanged)
        return Handled(Action.POSTPONED)

    def _resume(self, run: Run, unchanged: Condition) -> Handled:
        # The time of a pause, or behind other runs, does not count towards the run's maximum age.
        waited = run.waits_for in {*RESUMPTIONS, TURN}
        resumed = {"resumed_at": to_ms(self._now)} if waited else {}
        resume(self._table, run, unchanged=unchanged, now=self._now, values=resumed)
        return Handled(Action.RESUMED, RunMessage.of(run))

    def _resend(self, run: Run, due_at: datetime, unchanged: Condition) -> Handled:
        missed = overdue_at(_expected(run))
        if run.resends == 0 and missed > self._now:
            return self._move(run, missed, unchanged)
        lane = self._manifest.lane_of(run.handler)
        if self._now - due_at < self._backlogs.explained_age(lane):
            # Only the daily look reads runs while their lane's backlog explains the wait.
            return self._move(run, self._now, unchanged)
        fifo = self._lanes.queue(lane).fifo
        if run.resends >= len(RESENDS) and not fifo:
            why = f"sent {run.resends} times, never received"
            return self._give_up(run, DeathCause.NEVER_RECEIVED, why)
        sent = run.resends + 1
        change = Change(set={"due_at": to_ms(next_resend(self._now, sent)), "resends": sent})
        self._update(run, change, unchanged)
        # The generation stays, so a message that is still in the queue stays valid.
        return Handled(Action.RESENT, RunMessage.of(run))

    def _give_up(self, run: Run, cause: DeathCause, why: str) -> Handled:
        reason = f"{why}; last error: {run.last_error}" if run.last_error else why
        gone = give_up(self._table, run, cause, reason, now=self._now, sent_at=self._now)
        if not gone:
            return Handled(Action.MOVED_ON)
        run_ended(self._table, run, now=self._now)
        expired = cause is DeathCause.EVENT_EXPIRED
        return Handled(Action.EXPIRED if expired else Action.LOST, dead=run)

    def _move(self, run: Run, until: datetime, unchanged: Condition) -> Handled:
        self._update(run, Change(set={"due_at": to_ms(until)}), unchanged)
        return Handled(Action.POSTPONED)

    def _update(self, run: Run, change: Change, unchanged: Condition) -> None:
        transition(self._table, key_of_run(run), change, when=unchanged)


def _raised(error: Exception) -> None:
    raise error


def _subjects(run: Run) -> tuple[tuple[Subject, str], tuple[Subject, str]]:
    return (Subject.HANDLER, run.handler), (Subject.TENANT, run.tenant)


def _unchanged(run: Run, row: Item) -> Condition:
    return every(as_seen(run), Equals("due_at", row["due_at"]))


def _expected(run: Run) -> datetime:
    """Returns the time by which a message of the run should have had an effect."""
    if run.status is Status.PROCESSING and run.claimed_until is not None:
        return run.claimed_until
    if run.next_attempt_at is not None:
        return run.next_attempt_at
    return run.last_at or run.first_at or EPOCH
