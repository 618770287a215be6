"""Attempt limits and delays, by which `Settler.settle` retries or ends a run."""

from datetime import timedelta
from itertools import takewhile

from webhook_inbox.domain.errors import Transient
from webhook_inbox.domain.manifest import Backoff, HandlerSpec
from webhook_inbox.domain.model import Run
from webhook_inbox.domain.ports import Randomness


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
    earlier = run.attempts[len(run.attempts) - run.attempts_in_round + 1 :]
    same = takewhile(lambda attempt: attempt.error == reason, reversed(earlier))
    return 1 + sum(1 for _ in same) >= fewer


def attempts_allowed(error: BaseException) -> int | None:
    """Returns the attempts that an error allows below its handler's limit, None for no limit."""
    fewer = getattr(error, "max_attempts", None) if isinstance(error, Transient) else None
    return fewer if isinstance(fewer, int) else None


def last_words(run: Run) -> str:
    """Returns why a run's last attempt failed, even if its worker reported no reason."""
    reported = run.attempts[-1].number if run.attempts else 0
    if run.attempt_count == reported:
        return run.last_error
    silence = "its worker stopped silently"
    return f"{silence}; before that: {run.last_error}" if run.last_error else silence


def delay_asked(error: BaseException) -> timedelta:
    """Returns the delay that the handler asked for; an invalid one counts as none."""
    asked = getattr(error, "retry_after", None) if isinstance(error, Transient) else None
    return asked if isinstance(asked, timedelta) else timedelta(0)


def backoff_delay(backoff: Backoff, attempt: int, randomness: Randomness) -> timedelta:
    """Returns exponential backoff with full jitter for the attempt (from 1) that failed."""
    # The exponent is bounded so that a high attempt number cannot overflow a float.
    ceiling = min(backoff.cap, backoff.base * backoff.factor ** min(attempt - 1, 64))
    return timedelta(seconds=randomness.uniform(0, ceiling))
