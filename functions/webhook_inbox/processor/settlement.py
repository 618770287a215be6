"""What becomes of a run and its message once an attempt is over, or was refused.

The run is settled first and the message dealt with second, so a crash between the two leaves
a message whose claim fails and who then does the second half again.
"""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final

from webhook_inbox.domain.errors import Deferred, HandlerTimedOut, Held, Permanent, Skipped
from webhook_inbox.domain.manifest import HandlerSpec
from webhook_inbox.domain.model import Run, Status, WaitStrategy
from webhook_inbox.domain.ports import Clock, Message, Randomness, Table
from webhook_inbox.domain.secrets import SecretCache
from webhook_inbox.domain.timestamps import to_ms
from webhook_inbox.ledger.lease import NotClaimable, Refusal
from webhook_inbox.ledger.settle import Settlement, cut, give_up, settle
from webhook_inbox.processor.retry_policy import (
    backoff_delay,
    delay_asked,
    describe,
    is_exhausted,
    last_words,
)
from webhook_inbox.queue import message_groups
from webhook_inbox.queue.lanes import Lanes
from webhook_inbox.queue.message import RunMessage
from webhook_inbox.queue.outcomes import RunOutcome, RunResult, Worker
from webhook_inbox.queue.visibility import plan_wait, queue_policy_of

# A deployment that rolls out may send runs of a handler that this worker does not know yet.
ROLLING: Final = timedelta(hours=1)
ROLLING_PAUSE: Final = timedelta(seconds=60)
# A handler that waits for a moment in the past must not spin through the queue.
SHORTEST_WAIT: Final = timedelta(seconds=1)
# A downstream that asks for more is not taken at its word.
RETRY_AFTER_LIMIT: Final = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class LeasedRun:
    """A claimed run and the message it was claimed through."""

    run: Run
    message: Message
    reference: RunMessage
    worker: Worker

    def result(
        self, outcome: RunOutcome, detail: str = "", error: BaseException | None = None
    ) -> RunResult:
        """Returns the message's result."""
        return RunResult(outcome, self.reference, self.run.attempt_count, detail, error)


class Settler:
    """Settles attempts and disposes of messages."""

    def __init__(
        self,
        *,
        table: Table,
        lanes: Lanes,
        secrets: SecretCache,
        clock: Clock,
        randomness: Randomness,
    ) -> None:
        self._table = table
        self._lanes = lanes
        self._secrets = secrets
        self._clock = clock
        self._randomness = randomness

    def of(self, attempt: LeasedRun, spec: HandlerSpec, error: BaseException | None) -> RunResult:
        """Settles an attempt by what its handler raised, None for nothing."""
        now = self._clock.now()
        if error is None or isinstance(error, Skipped):
            return self._finish(attempt, error, now)
        if isinstance(error, Deferred):
            return self._defer(attempt, spec, error, now)
        if isinstance(error, Held):
            return self._hold(attempt, error, now)
        reason = self._secrets.redact(describe(error))
        if isinstance(error, Permanent):
            return self._die(attempt, spec, f"permanent: {reason}", error, now)
        if is_exhausted(spec, attempt.run, error, cut(reason)):
            return self._die(attempt, spec, f"exhausted: {reason}", error, now)
        return self._retry(attempt, spec, error, now)

    def unknown_handler(self, attempt: LeasedRun) -> RunResult:
        """Lets a run wait whose handler is not in this deployment; an hour, then it is dead."""
        now, since = self._clock.now(), attempt.run.unknown_since
        reason = f"handler {attempt.run.handler!r} is not in this deployment"
        if since is not None and since < now - ROLLING:
            return self._die(attempt, None, f"permanent: {reason}", None, now)
        return self._wait(attempt, now + ROLLING_PAUSE, now, reason, unknown=True)

    def refused(
        self,
        refused: NotClaimable,
        spec: HandlerSpec,
        message: Message,
        reference: RunMessage,
        worker: Worker,
    ) -> RunResult:
        """Disposes of a message whose run could not be claimed."""
        run, why = refused.run, refused.refusal
        if why is Refusal.EXHAUSTED and run is not None:
            return self._give_up(run, spec, message, reference, worker)
        queue_policy, now = queue_policy_of(self._lanes, worker), self._clock.now()
        stays = queue_policy.stays(why, run, now)
        if stays is not None:
            queue_policy.hide(message, stays)
            return RunResult(RunOutcome.WAITING, reference, detail=str(why))
        if why is Refusal.DEAD:
            queue_policy.give_up(message)
            return RunResult(queue_policy.outcome(RunOutcome.BURIED), reference, detail=str(why))
        if why is Refusal.COPY_MISSING and run is not None and run.next_attempt_at is not None:
            queue_policy.carry(run, plan_wait(run.next_attempt_at - now, may_hide=False), message)
        outcome = RunOutcome.LEFT if why is Refusal.CLAIMED_HERE else RunOutcome.DROPPED
        return RunResult(outcome, reference, detail=str(why))

    def _retry(
        self, attempt: LeasedRun, spec: HandlerSpec, error: BaseException, now: datetime
    ) -> RunResult:
        reason = self._secrets.redact(describe(error))
        delay = backoff_delay(spec.backoff, attempt.run.attempts_in_round, self._randomness)
        delay = max(delay, min(delay_asked(error), RETRY_AFTER_LIMIT))
        queue_policy = queue_policy_of(self._lanes, attempt.worker)
        chosen = queue_policy.failed(delay, attempt.message)
        outcome = "timed out" if isinstance(error, HandlerTimedOut) else "failed"
        due = now + chosen.delay
        run = self._settle(
            attempt, Settlement(Status.FAILED, outcome, now, reason, due, chosen.wait)
        )
        queue_policy.carry(run, chosen, attempt.message)
        kept = chosen.wait is WaitStrategy.HIDDEN
        return attempt.result(RunOutcome.FAILED_KEPT if kept else RunOutcome.FAILED, reason, error)

    def _defer(
        self, attempt: LeasedRun, spec: HandlerSpec, error: Deferred, now: datetime
    ) -> RunResult:
        reason = self._secrets.redact(describe(error))
        end = (attempt.run.round_began_at or now) + timedelta(seconds=spec.max_age)
        if error.until > end:
            reason = f"expired: {reason}; it would wait past its maximum age"
            return self._die(attempt, spec, reason, error, now)
        return self._wait(attempt, error.until, now, reason, error=error)

    def _finish(self, attempt: LeasedRun, skipped: Skipped | None, now: datetime) -> RunResult:
        if skipped is None:
            self._settle(attempt, Settlement(Status.DONE, "done", now))
            return attempt.result(RunOutcome.DONE)
        reason = self._secrets.redact(describe(skipped))
        self._settle(attempt, Settlement(Status.SKIPPED, "skipped", now, reason))
        return attempt.result(RunOutcome.SKIPPED, reason)

    def _hold(self, attempt: LeasedRun, error: Held, now: datetime) -> RunResult:
        reason = self._secrets.redact(describe(error))
        held = {
            "subject": cut(self._secrets.redact(error.subject)),
            "reason": cut(reason),
            "shows": cut(self._secrets.redact(error.shows)),
            "fingerprint": error.fingerprint,
            "at": to_ms(now),
        }
        settlement = Settlement(Status.HELD, "held", now, reason, spent=False, held=held)
        self._settle(attempt, settlement)
        queue_policy = queue_policy_of(self._lanes, attempt.worker)
        queue_policy.hold(attempt.message)
        return attempt.result(queue_policy.outcome(RunOutcome.HELD), reason)

    def _wait(
        self,
        attempt: LeasedRun,
        until: datetime,
        now: datetime,
        reason: str,
        *,
        unknown: bool = False,
        error: Deferred | None = None,
    ) -> RunResult:
        parked = error is not None and error.parked
        queue_policy = queue_policy_of(self._lanes, attempt.worker)
        chosen = queue_policy.deferred(max(until - now, SHORTEST_WAIT), parked=parked)
        settlement = Settlement(
            Status.DEFERRED,
            "deferred",
            now,
            reason,
            now + chosen.delay,
            chosen.wait,
            spent=False,
            unknown=unknown,
            waits_for=error.waits_for if error else "",
            reservations=error.reservations if error else {},
        )
        run = self._settle(attempt, settlement)
        queue_policy.carry(run, chosen, attempt.message)
        kept = chosen.wait is WaitStrategy.HIDDEN
        return attempt.result(RunOutcome.DEFERRED_KEPT if kept else RunOutcome.DEFERRED, reason)

    def _die(
        self,
        attempt: LeasedRun,
        spec: HandlerSpec | None,
        reason: str,
        error: BaseException | None,
        now: datetime,
    ) -> RunResult:
        if spec is not None:
            run = message_groups.block(self._table, spec, attempt.run, now=now)
            attempt = replace(attempt, run=run)
        self._settle(attempt, Settlement(Status.DEAD_LETTER, "dead", now, reason))
        queue_policy = queue_policy_of(self._lanes, attempt.worker)
        queue_policy.give_up(attempt.message)
        page = getattr(error, "page", False) is True
        return replace(
            attempt.result(queue_policy.outcome(RunOutcome.DEAD), reason, error), page=page
        )

    def _give_up(
        self,
        run: Run,
        spec: HandlerSpec,
        message: Message,
        reference: RunMessage,
        worker: Worker,
    ) -> RunResult:
        reason = f"exhausted: {last_words(run)}"
        now = self._clock.now()
        run = message_groups.block(self._table, spec, run, now=now)
        if not give_up(self._table, run, error=reason, now=now, sent_at=message.sent_at):
            return RunResult(RunOutcome.UNAVAILABLE, reference, detail="the run changed meanwhile")
        queue_policy = queue_policy_of(self._lanes, worker)
        queue_policy.give_up(message)
        return RunResult(
            queue_policy.outcome(RunOutcome.DEAD), reference, run.attempt_count, reason
        )

    def _settle(self, attempt: LeasedRun, settlement: Settlement) -> Run:
        return settle(self._table, attempt.run, settlement, sent_at=attempt.message.sent_at)
