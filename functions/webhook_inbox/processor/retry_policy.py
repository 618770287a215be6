"""Attempt limits and delays, by which `Settler.settle` retries or ends a run."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from itertools import takewhile
from typing import Final

from webhook_inbox.destinations.gate import WAITS_FOR
from webhook_inbox.domain.error_text import describe
from webhook_inbox.domain.errors import Deferred, Held, Permanent, Transient
from webhook_inbox.domain.internal_errors import DestinationWait, Postponed, TransientOfCall
from webhook_inbox.domain.manifest import Backoff, HandlerSpec
from webhook_inbox.domain.model import Run
from webhook_inbox.domain.ports import Randomness

# The longest `retry_after` that is honoured.
RETRY_AFTER_LIMIT: Final = timedelta(days=1)


def is_exhausted(spec: HandlerSpec, run: Run, error: BaseException, reason: str) -> bool:
    """Tells whether a run has no attempts left.

    An error may allow fewer attempts than its handler; they count consecutive failures with the
    same reason.
    """
    if run.attempts_in_round >= spec.max_attempts:
        return True
    fewer = attempts_allowed(error)
    if fewer is None:
        return False
    counted = run.counted_attempts
    earlier = counted[max(len(counted) - run.attempts_in_round + 1, 0) :]
    same = takewhile(lambda attempt: attempt.error == reason, reversed(earlier))
    return 1 + sum(1 for _ in same) >= fewer


def attempts_allowed(error: BaseException) -> int | None:
    """Returns the attempts that an error allows below its handler's limit, None for no limit."""
    fewer = getattr(error, "max_attempts", None) if isinstance(error, Transient) else None
    return fewer if isinstance(fewer, int) else None


def last_words(run: Run) -> str:
    """Returns why a run's last attempt failed, even if its worker reported no reason."""
    if run.attempt_count == run.last_reported:
        return run.last_error
    silence = "its worker stopped silently"
    return f"{silence}; before that: {run.last_error}" if run.last_error else silence


def delay_asked(error: BaseException) -> timedelta:
    """Returns the delay that the handler asked for, up to a day; an invalid one counts as none."""
    asked = getattr(error, "retry_after", None) if isinstance(error, Transient) else None
    return min(asked, RETRY_AFTER_LIMIT) if isinstance(asked, timedelta) else timedelta(0)


def deferral_of(
    error: BaseException, now: datetime, wait: DestinationWait | None = None
) -> Deferred | None:
    """Returns the deferral by which an attempt ends that is not counted, None if it counts.

    It is the error itself, or the wait for a destination whose open circuit caused a retryable
    error: the handler may have caught the error of the call and raised this one meanwhile.

    Args:
        error: the error by which the attempt ends.
        now: the time.
        wait: the wait for a destination that the handler declares, if a call met an open circuit
            in this attempt. The run waits for it also if the handler has discarded the call's
            error, since it may have built this one from its text.
    """
    if isinstance(error, Deferred):
        return error
    if isinstance(error, Held | Permanent):
        return None
    earliest, reason = now + delay_asked(error), describe(error)
    for cause in _causes(error):
        # A name that does not resolve ends the run after its own few attempts, and pages.
        limited = isinstance(cause, TransientOfCall) and cause.max_attempts is not None
        if isinstance(cause, TransientOfCall) and cause.wait is not None and not limited:
            until = max(cause.wait.until, earliest)
            return Postponed(until, reason, waits_for=cause.wait.waits_for)
        if isinstance(cause, Postponed) and cause.waits_for.startswith(WAITS_FOR):
            until, waits_for = max(cause.until, earliest), cause.waits_for
            return Postponed(until, reason, waits_for=waits_for, reservations=cause.reservations)
    if wait is not None and attempts_allowed(error) is None:
        return Postponed(max(wait.until, earliest), reason, waits_for=wait.waits_for)
    return None


def _causes(error: BaseException) -> Iterator[BaseException]:
    """Yields an error, the errors that it was raised from or for, and the members of groups."""
    waiting, seen = [error], set[int]()
    while waiting:
        current = waiting.pop()
        if id(current) in seen:
            continue
        seen.add(id(current))
        yield current
        members = current.exceptions if isinstance(current, BaseExceptionGroup) else ()
        # `raise … from None` hides the context from the traceback only.
        waiting += [each for each in (current.__context__, current.__cause__, *members) if each]


def backoff_delay(backoff: Backoff, attempt: int, randomness: Randomness) -> timedelta:
    """Returns exponential backoff with full jitter for the attempt (from 1) that failed."""
    # The exponent is bounded so that a high attempt number cannot overflow a float.
    ceiling = min(backoff.cap, backoff.base * backoff.factor ** min(attempt - 1, 64))
    return timedelta(seconds=randomness.uniform(0, ceiling))
