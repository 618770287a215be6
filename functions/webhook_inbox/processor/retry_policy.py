"""Attempt limits, delays and error texts, by which `Settler.settle` retries or ends a run."""

from datetime import timedelta
from itertools import takewhile
from traceback import walk_tb
from typing import Final

from webhook_inbox.domain.errors import InboxError, Transient
from webhook_inbox.domain.manifest import Backoff, HandlerSpec
from webhook_inbox.domain.model import Run
from webhook_inbox.domain.ports import Randomness

# The package of the handlers, and the bytes that are kept of a path and line in it.
HANDLERS: Final = "handlers"
LINE_LIMIT: Final = 200


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


def describe(error: BaseException) -> str:
    """Returns an error's text for the ledger; errors that are not ours get their class name."""
    try:
        text = str(error)
    except Exception:  # noqa: BLE001 - printing a handler's exception may fail
        text = "(its text cannot be printed)"
    return text if isinstance(error, InboxError) else f"{type(error).__name__}: {text}"


def error_line(error: BaseException | None) -> str:
    """Returns the handler's file and line that raised an error, such as `handlers/orders.py:12`.

    The innermost frame of the package `handlers` counts; frames of libraries below it do not. ""
    where there is none; at most 200 bytes.
    """
    frames = walk_tb(error.__traceback__ if error else None)
    found = ""
    for frame, line in frames:
        module = str(frame.f_globals.get("__name__", "")).split(".")
        if module[0] == HANDLERS:
            # A path ends with the parts of the module; others may be called handlers too.
            *parts, file = frame.f_code.co_filename.replace("\\", "/").split("/")
            above = len(module) - (file != "__init__.py")
            found = f"{'/'.join([*parts[len(parts) - above :], file])}:{line}"
    kept = found.encode(errors="replace")[-LINE_LIMIT:]
    return kept.decode(errors="ignore")


def backoff_delay(backoff: Backoff, attempt: int, randomness: Randomness) -> timedelta:
    """Returns exponential backoff with full jitter for the attempt (from 1) that failed."""
    # The exponent is bounded so that a high attempt number cannot overflow a float.
    ceiling = min(backoff.cap, backoff.base * backoff.factor ** min(attempt - 1, 64))
    return timedelta(seconds=randomness.uniform(0, ceiling))
