"""Settles an attempt: writes the run's next state, then disposes of its message.

A crash between the two leaves a message whose lease is refused; `refused` then completes the
second step.
"""

from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Final

from webhook_inbox.domain.error_text import describe, error_class, error_line
from webhook_inbox.domain.errors import Deferred, HandlerTimedOut, Held, Permanent, Skipped
from webhook_inbox.domain.internal_errors import DestinationWait
from webhook_inbox.domain.manifest import HandlerSpec
from webhook_inbox.domain.model import NOT_COUNTED, Run, Status, WaitStrategy
from webhook_inbox.domain.personal import PersonalTexts
from webhook_inbox.domain.ports import Clock, Randomness, Table
from webhook_inbox.domain.secrets import SecretCache
from webhook_inbox.domain.timestamps import to_ms
from webhook_inbox.ledger.lease import NotClaimable, Refusal
from webhook_inbox.ledger.schema import RUN_LIFE
from webhook_inbox.ledger.settle import Settlement, cut, give_up, settle
from webhook_inbox.processor.retry_policy import (
    attempts_allowed,
    backoff_delay,
    deferral_of,
    delay_asked,
    is_exhausted,
    last_words,
)
from webhook_inbox.queue.line import Line
from webhook_inbox.queue.message import RunMessage
from webhook_inbox.queue.outcomes import RunOutcome, RunResult
from webhook_inbox.queue.visibility import StandardQueuePolicy, plan_wait

# During a rolling deployment, a worker may receive runs of a handler that it does not have yet.
ROLLING: Final = timedelta(hours=1)
ROLLING_PAUSE: Final = timedelta(seconds=60)
# The shortest deferral: a handler that waits for a moment in the past must not loop in the queue.
SHORTEST_WAIT: Final = timedelta(seconds=1)


@dataclass(frozen=True, slots=True)
class LeasedRun:
    """A leased run, the message that it was leased through, and its line if it keeps order.

    `personal` removes the values of the event's personal fields from texts.
    """

    run: Run
    reference: RunMessage
    policy: StandardQueuePolicy
    line: Line | None = None
    personal: PersonalTexts = field(default_factory=PersonalTexts)

    def in_line(self, now: datetime) -> "LeasedRun":
        """Returns it with an entry in its line, to be written before a wait without its message.

        The message still blocks its group, so no later run of the ordering key can enter first.
        """
        run = self.run
        if self.line is None:
            return self
        end = run.expires_at or now + RUN_LIFE
        place = self.line.enter(
            run.source, run.event_id, place=run.place, run_expires_at=end, now=now
        )
        return replace(self, run=replace(run, place=place))

    def ended(self, now: datetime) -> None:
        """Continues its line after it has ended; without an entry no other run waits there."""
        if self.line is not None and self.run.place:
            self.line.leave(self.run.place)
            self.line.advance(self.policy.lanes, self.policy.worker.lane, now, ended=True)

    def result(
        self,
        outcome: RunOutcome,
        detail: str = "",
        error: BaseException | None = None,
        *,
        keeps_message: bool = False,
    ) -> RunResult:
        """Returns the message's result."""
        run = self.run
        return RunResult(
            outcome,
            self.reference,
            run.attempt_count,
            detail,
            error,
            deaths=run.deaths + (outcome is RunOutcome.DEAD),
            replayed=bool(run.replays),
            keeps_message=keeps_message,
            hide=self.personal.hide,
        )


class Settler:
    """Settles attempts and disposes of messages."""

    def __init__(
        self, *, table: Table, secrets: SecretCache, clock: Clock, randomness: Randomness
    ) -> None:
        self._table = table
        self._secrets = secrets
        self._clock = clock
        self._randomness = randomness

    def settle(
        self,
        leased: LeasedRun,
        spec: HandlerSpec,
        error: BaseException | None,
        *,
        wait: DestinationWait | None = None,
    ) -> RunResult:
        """Settles an attempt by the error that its handler raised, None for none.

        `wait` is that of `deferral_of`.

        Raises:
            LeaseLost: another worker has the run; nothing was written.
            Unavailable: ledger or queue failed; the run may be settled.
        """
        now = self._clock.now()
        if error is None or isinstance(error, Skipped):
            return self._finish(leased, error, now)
        deferral = deferral_of(error, now, wait)
        if deferral is not None:
            return self._defer(leased, spec, deferral, error, now)
        if isinstance(error, Held):
            return self._hold(leased, error, now)
        reason = self._redact(leased, describe(error))
        if isinstance(error, Permanent):
            return self._die(leased, spec, f"permanent: {reason}", error, now)
        if is_exhausted(spec, leased.run, error, cut(reason)):
            return self._die(leased, spec, f"exhausted: {reason}", error, now)
        return self._retry(leased, spec, error, now)

    def unknown_handler(self, leased: LeasedRun) -> RunResult:
        """Defers a run whose handler is not in this deployment; after an hour, it is dead."""
        now, since = self._clock.now(), leased.run.unknown_since
        reason = f"handler {leased.run.handler!r} is not in this deployment"
        if since is not None and since < now - ROLLING:
            return self._die(leased, None, f"permanent: {reason}", None, now)
        return self._wait(leased, now + ROLLING_PAUSE, now, reason, unknown=True)

    def refused(
        self,
        refused: NotClaimable,
        spec: HandlerSpec,
        reference: RunMessage,
        policy: StandardQueuePolicy,
        line: Line | None,
    ) -> RunResult:
        """Disposes of a message whose run could not be leased."""
        run, why = refused.run, refused.refusal
        if why is Refusal.EXHAUSTED and run is not None:
            return self._give_up(LeasedRun(run, reference, policy, line), spec)
        now = self._clock.now()
        if why in {Refusal.FINISHED, Refusal.DEAD} and line is not None:
            # The worker that ended it may have crashed before it sent the next run.
            line.advance(policy.lanes, policy.worker.lane, now, ended=True)
        again = policy.receive_again(why, run, now)
        if again is not None:
            policy.hide(again)
            return RunResult(RunOutcome.WAITING, reference, detail=str(why))
        if why is Refusal.CLAIMED_HERE:
            return RunResult(RunOutcome.IN_FLIGHT, reference, detail=str(why))
        if why is Refusal.DEAD and policy.end_dead():
            return RunResult(RunOutcome.TO_DLQ, reference, detail=str(why))
        if why is Refusal.COPY_MISSING and run is not None and run.next_attempt_at is not None:
            policy.wait(run, plan_wait(run.next_attempt_at - now))
        return RunResult(RunOutcome.DELETED, reference, detail=str(why), keeps_message=False)

    def _retry(
        self, leased: LeasedRun, spec: HandlerSpec, error: BaseException, now: datetime
    ) -> RunResult:
        reason = self._redact(leased, describe(error))
        backoff = backoff_delay(spec.backoff, leased.run.attempts_in_round, self._randomness)
        delay = max(backoff, delay_asked(error))
        planned = leased.policy.retry(delay)
        outcome = "timed out" if isinstance(error, HandlerTimedOut) else "failed"
        due = now + planned.delay
        if planned.wait is WaitStrategy.PARKED:
            leased = leased.in_line(now)
        settlement = Settlement(Status.FAILED, outcome, now, reason, due, planned.wait)
        limit = attempts_allowed(error) or 0
        settlement = replace(settlement, attempt_limit=limit)
        run = self._settle(leased, _caused(settlement, error))
        keeps = leased.policy.wait(run, planned)
        result = leased.result(RunOutcome.FAILED, reason, error, keeps_message=keeps)
        return replace(result, due=run.next_attempt_at)

    def _defer(
        self,
        leased: LeasedRun,
        spec: HandlerSpec,
        deferral: Deferred,
        error: BaseException,
        now: datetime,
    ) -> RunResult:
        reason = self._redact(leased, describe(deferral))
        end = (leased.run.round_began_at or now) + timedelta(seconds=spec.max_age)
        if deferral.until > end:
            reason = f"expired: {reason}; it would wait past its maximum age"
            return self._die(leased, spec, reason, error, now)
        cause = None if deferral is error else error
        return self._wait(leased, deferral.until, now, reason, deferral=deferral, cause=cause)

    def _finish(self, leased: LeasedRun, skipped: Skipped | None, now: datetime) -> RunResult:
        if skipped is None:
            self._settle(leased, Settlement(Status.DONE, "done", now))
            leased.ended(now)
            return leased.result(RunOutcome.DONE)
        reason = self._redact(leased, describe(skipped))
        why = skipped.reason
        self._settle(leased, Settlement(Status.SKIPPED, "skipped", now, reason, skip_reason=why))
        leased.ended(now)
        return leased.result(RunOutcome.SKIPPED, reason)

    def _hold(self, leased: LeasedRun, error: Held, now: datetime) -> RunResult:
        reason = self._redact(leased, describe(error))
        held = {
            "subject": cut(self._redact(leased, error.subject)),
            "reason": cut(reason),
            "shows": cut(self._redact(leased, error.shows)),
            "fingerprint": error.fingerprint,
            "at": to_ms(now),
            **error.wake,
        }
        leased = leased.in_line(now)
        self._settle(leased, Settlement(Status.HELD, "held", now, reason, spent=False, held=held))
        return replace(leased.result(RunOutcome.HELD, reason), doubtful=error.doubtful)

    def _wait(
        self,
        leased: LeasedRun,
        until: datetime,
        now: datetime,
        reason: str,
        *,
        unknown: bool = False,
        deferral: Deferred | None = None,
        cause: BaseException | None = None,
    ) -> RunResult:
        """Defers a run; `cause` is the error of an attempt that its history shows."""
        parked = deferral is not None and deferral.parked
        planned = leased.policy.deferral(max(until - now, SHORTEST_WAIT), parked=parked)
        if planned.wait is WaitStrategy.PARKED:
            leased = leased.in_line(now)
        settlement = Settlement(
            Status.DEFERRED,
            "deferred" if cause is None else NOT_COUNTED,
            now,
            reason,
            due=now + planned.delay,
            wait=planned.wait,
            spent=False,
            unknown=unknown,
            waits_for=deferral.waits_for if deferral else "",
            reservations=deferral.reservations if deferral else {},
        )
        run = self._settle(leased, _caused(settlement, cause))
        keeps = leased.policy.wait(run, planned)
        result = leased.result(RunOutcome.DEFERRED, reason, cause, keeps_message=keeps)
        return replace(result, due=run.next_attempt_at)

    def _die(
        self,
        leased: LeasedRun,
        spec: HandlerSpec | None,
        reason: str,
        error: BaseException | None,
        now: datetime,
    ) -> RunResult:
        leased = _blocking(leased, spec, now)
        settlement = Settlement(Status.DEAD_LETTER, "dead", now, reason)
        self._settle(leased, _caused(settlement, error))
        if not leased.run.blocking:
            leased.ended(now)
        keeps = leased.policy.end_dead()
        page = getattr(error, "page", False) is True
        result = leased.result(RunOutcome.DEAD, reason, error, keeps_message=keeps)
        return replace(result, page=page)

    def _give_up(self, refused: LeasedRun, spec: HandlerSpec) -> RunResult:
        reason = f"exhausted: {last_words(refused.run)}"
        now, sent_at = self._clock.now(), refused.policy.message.sent_at
        refused = _blocking(refused, spec, now)
        if not give_up(self._table, refused.run, error=reason, now=now, sent_at=sent_at):
            return RunResult(
                RunOutcome.UNAVAILABLE, refused.reference, detail="the run was changed meanwhile"
            )
        if not refused.run.blocking:
            refused.ended(now)
        keeps = refused.policy.end_dead()
        return refused.result(RunOutcome.DEAD, reason, keeps_message=keeps)

    def _redact(self, leased: LeasedRun, text: str) -> str:
        return leased.personal.hide(self._secrets.redact(text))

    def _settle(self, leased: LeasedRun, settlement: Settlement) -> Run:
        sent_at = leased.policy.message.sent_at
        return settle(self._table, leased.run, settlement, sent_at=sent_at)


def _blocking(leased: LeasedRun, spec: HandlerSpec | None, now: datetime) -> LeasedRun:
    """Returns a run that is about to die; it keeps its place if its handler says so."""
    blocks = spec is not None and spec.blocks and leased.line is not None
    leased = leased.in_line(now) if blocks else leased
    return replace(leased, run=replace(leased.run, blocking=blocks))


def _caused(settlement: Settlement, error: BaseException | None) -> Settlement:
    """Returns a settlement with the class of an error and the handler's line that raised it."""
    return replace(settlement, error_line=error_line(error), error_class=error_class(error))
