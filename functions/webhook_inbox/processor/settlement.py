"""Settles an attempt: writes the run's next state, then disposes of its message.

A crash between the two leaves a message whose lease is refused; `refused` then completes the
second step.
"""

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final

from webhook_inbox.domain.death import DeathCause
from webhook_inbox.domain.error_text import describe, error_class, error_line
from webhook_inbox.domain.errors import Deferred, HandlerTimedOut, Held, Permanent, Skipped
from webhook_inbox.domain.internal_errors import DestinationWait
from webhook_inbox.domain.model import NOT_COUNTED, Run, Status, WaitStrategy
from webhook_inbox.domain.ports import Ports
from webhook_inbox.domain.timestamps import to_ms
from webhook_inbox.ledger.lease import Refusal
from webhook_inbox.ledger.settle import Settlement, cut, death, give_up, settle
from webhook_inbox.processor.attempt import RunAttempt
from webhook_inbox.processor.retry_policy import (
    attempts_allowed,
    backoff_delay,
    deferral_of,
    delay_asked,
    is_exhausted,
    last_words,
)
from webhook_inbox.queue.outcomes import RunOutcome, RunResult
from webhook_inbox.queue.visibility import plan_wait

# During a rolling deployment, a worker may receive runs of a handler that it does not have yet.
ROLLING: Final = timedelta(hours=1)
ROLLING_PAUSE: Final = timedelta(seconds=60)
# The shortest deferral: a handler that waits for a moment in the past must not loop in the queue.
SHORTEST_WAIT: Final = timedelta(seconds=1)


class Settler:
    """Settles attempts and disposes of messages."""

    def __init__(self, ports: Ports) -> None:
        self._table = ports.table
        self._secrets = ports.secrets
        self._clock = ports.clock
        self._randomness = ports.randomness

    def settle(
        self,
        attempt: RunAttempt,
        error: BaseException | None,
        *,
        wait: DestinationWait | None = None,
    ) -> RunResult:
        """Settles the attempt of a leased run by the error that its handler raised, None for none.

        `wait` is that of `deferral_of`.

        Raises:
            LeaseLost: another worker has the run; nothing was written.
            Unavailable: ledger or queue failed; the run may be settled.
        """
        now = self._clock.now()
        if error is None or isinstance(error, Skipped):
            return self._finish(attempt, error, now)
        deferral = deferral_of(error, now, wait)
        if deferral is not None:
            return self._defer(attempt, deferral, error, now)
        if isinstance(error, Held):
            return self._hold(attempt, error, now)
        reason = self._redact(attempt, describe(error))
        if isinstance(error, Permanent):
            return self._die(attempt, DeathCause.PERMANENT, reason, now, error)
        if is_exhausted(attempt.spec, attempt.run, error, cut(reason)):
            return self._die(attempt, DeathCause.EXHAUSTED, reason, now, error)
        return self._retry(attempt, error, now)

    def unknown_handler(self, attempt: RunAttempt) -> RunResult:
        """Defers a run whose handler is not in this deployment; after an hour, it is dead."""
        now, since = self._clock.now(), attempt.run.unknown_since
        reason = f"handler {attempt.run.handler!r} is not in this deployment"
        if since is not None and since < now - ROLLING:
            return self._die(attempt, DeathCause.UNKNOWN_HANDLER, reason, now)
        return self._wait(attempt, now + ROLLING_PAUSE, now, reason, unknown=True)

    def refused(self, attempt: RunAttempt, why: Refusal) -> RunResult:
        """Disposes of a message whose run could not be leased."""
        if why is Refusal.EXHAUSTED:
            return self._give_up(attempt)
        run, reference, policy = attempt.run, attempt.reference, attempt.policy
        now = self._clock.now()
        if why in {Refusal.FINISHED, Refusal.DEAD}:
            # The worker that ended it may have crashed before it sent the next run.
            attempt.advance_line(now, ended=True)
        again = policy.receive_again(why, run, now)
        if again is not None:
            policy.hide(again)
            return RunResult(RunOutcome.WAITING, reference, detail=str(why))
        if why is Refusal.CLAIMED_HERE:
            return RunResult(RunOutcome.IN_FLIGHT, reference, detail=str(why))
        if why is Refusal.DEAD and policy.end_dead():
            return RunResult(RunOutcome.TO_DLQ, reference, detail=str(why))
        if why is Refusal.COPY_MISSING and run.next_attempt_at is not None:
            policy.wait(run, plan_wait(run.next_attempt_at - now))
        return RunResult(RunOutcome.DELETED, reference, detail=str(why), keeps_message=False)

    def _retry(self, attempt: RunAttempt, error: BaseException, now: datetime) -> RunResult:
        reason = self._redact(attempt, describe(error))
        backoff = backoff_delay(
            attempt.spec.backoff, attempt.run.attempts_in_round, self._randomness
        )
        delay = max(backoff, delay_asked(error))
        planned = attempt.policy.retry(delay)
        outcome = "timed out" if isinstance(error, HandlerTimedOut) else "failed"
        due = now + planned.delay
        if planned.wait is WaitStrategy.PARKED:
            attempt = attempt.in_line(now)
        settlement = Settlement(Status.FAILED, outcome, now, reason, due, planned.wait)
        limit = attempts_allowed(error) or 0
        settlement = replace(settlement, attempt_limit=limit)
        run = self._settle(attempt, _caused(settlement, error))
        keeps = attempt.policy.wait(run, planned)
        result = attempt.result(RunOutcome.FAILED, reason, error, keeps_message=keeps)
        return replace(result, due=run.next_attempt_at)

    def _defer(
        self, attempt: RunAttempt, deferral: Deferred, error: BaseException, now: datetime
    ) -> RunResult:
        reason = self._redact(attempt, describe(deferral))
        end = (attempt.run.round_began_at or now) + timedelta(seconds=attempt.spec.max_age)
        if deferral.until > end:
            reason = f"{reason}; it would wait past its maximum age"
            return self._die(attempt, DeathCause.OVER_AGE, reason, now, error)
        cause = None if deferral is error else error
        return self._wait(attempt, deferral.until, now, reason, deferral=deferral, cause=cause)

    def _finish(self, attempt: RunAttempt, skipped: Skipped | None, now: datetime) -> RunResult:
        if skipped is None:
            self._settle(attempt, Settlement(Status.DONE, "done", now))
            attempt.leave_line(now)
            return attempt.result(RunOutcome.DONE)
        reason = self._redact(attempt, describe(skipped))
        why = skipped.reason
        self._settle(attempt, Settlement(Status.SKIPPED, "skipped", now, reason, skip_reason=why))
        attempt.leave_line(now)
        return attempt.result(RunOutcome.SKIPPED, reason)

    def _hold(self, attempt: RunAttempt, error: Held, now: datetime) -> RunResult:
        reason = self._redact(attempt, describe(error))
        held = {
            "subject": cut(self._redact(attempt, error.subject)),
            "reason": cut(reason),
            "shows": cut(self._redact(attempt, error.shows)),
            "fingerprint": error.fingerprint,
            "at": to_ms(now),
            **error.wake,
        }
        attempt = attempt.in_line(now)
        self._settle(attempt, Settlement(Status.HELD, "held", now, reason, spent=False, held=held))
        return replace(attempt.result(RunOutcome.HELD, reason), doubtful=error.doubtful)

    def _wait(
        self,
        attempt: RunAttempt,
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
        planned = attempt.policy.deferral(max(until - now, SHORTEST_WAIT), parked=parked)
        if planned.wait is WaitStrategy.PARKED:
            attempt = attempt.in_line(now)
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
        run = self._settle(attempt, _caused(settlement, cause))
        keeps = attempt.policy.wait(run, planned)
        result = attempt.result(RunOutcome.DEFERRED, reason, cause, keeps_message=keeps)
        return replace(result, due=run.next_attempt_at)

    def _die(
        self,
        attempt: RunAttempt,
        cause: DeathCause,
        reason: str,
        now: datetime,
        error: BaseException | None = None,
    ) -> RunResult:
        attempt = _blocking(attempt, now)
        settlement = death(cause, reason, now)
        self._settle(attempt, _caused(settlement, error))
        if not attempt.run.blocking:
            attempt.leave_line(now)
        keeps = attempt.policy.end_dead()
        page = getattr(error, "page", False) is True
        result = attempt.result(RunOutcome.DEAD, settlement.error, error, keeps_message=keeps)
        return replace(result, page=page)

    def _give_up(self, attempt: RunAttempt) -> RunResult:
        cause, reason = DeathCause.UNREPORTED, last_words(attempt.run)
        now, sent_at = self._clock.now(), attempt.policy.message.sent_at
        attempt = _blocking(attempt, now)
        if not give_up(self._table, attempt.run, cause, reason, now=now, sent_at=sent_at):
            changed = "the run was changed meanwhile"
            return RunResult(RunOutcome.UNAVAILABLE, attempt.reference, detail=changed)
        if not attempt.run.blocking:
            attempt.leave_line(now)
        keeps = attempt.policy.end_dead()
        return attempt.result(RunOutcome.DEAD, cause.error_text(reason), keeps_message=keeps)

    def _redact(self, attempt: RunAttempt, text: str) -> str:
        return attempt.personal.hide(self._secrets.redact(text))

    def _settle(self, attempt: RunAttempt, settlement: Settlement) -> Run:
        sent_at = attempt.policy.message.sent_at
        return settle(self._table, attempt.run, settlement, sent_at=sent_at)


def _blocking(attempt: RunAttempt, now: datetime) -> RunAttempt:
    """Returns a run that is about to die; it keeps its place if its handler says so."""
    blocks = attempt.spec.blocks and attempt.line is not None
    attempt = attempt.in_line(now) if blocks else attempt
    return replace(attempt, run=replace(attempt.run, blocking=blocks))


def _caused(settlement: Settlement, error: BaseException | None) -> Settlement:
    """Returns a settlement with the class of an error and the handler's line that raised it."""
    return replace(settlement, error_line=error_line(error), error_class=error_class(error))
