"""The time of one ingest invocation, shared by all its AWS calls."""

import os
import time
from collections.abc import Callable
from typing import Final, TypeVar

from webhook_inbox.adapters.aws.errors import Caller, may_pass, once
from webhook_inbox.domain.errors import NoTimeLeft, Unavailable

T = TypeVar("T")

# Slack, Zoom and Discord want an answer within 3 s; half a second is left for the network.
TOTAL_SECONDS: Final = 2.5
RETRY_PAUSE: Final = (0.02, 0.08)


def _uniform(low: float, high: float) -> float:
    # Without a state, which all processes from one snapshot would have in common.
    return low + (high - low) * int.from_bytes(os.urandom(4)) / 2**32


class TimeBudget:
    """The time of one ingest invocation, shared by all its AWS calls.

    An attempt begins only if it fits with its full time-outs, so the provider gets its answer in
    time whatever fails. A transient error is retried once. The time-outs do not cover name
    resolution, a host with many unreachable addresses, or a response that arrives byte by byte;
    the function's own time-out ends those.
    """

    def __init__(
        self,
        *,
        total: float = TOTAL_SECONDS,
        monotonic: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
        jitter: Callable[[float, float], float] = _uniform,
    ) -> None:
        self._total = total
        self._monotonic = monotonic
        self._sleep = sleep
        self._jitter = jitter
        self.begin()

    def begin(self) -> None:
        """Starts the time; to be called at the start of every invocation."""
        self._end = self._monotonic() + self._total

    def attempts_of(self, seconds: float) -> Caller:
        """Returns a caller for a client whose attempts take at most so many seconds."""

        def call(service: str, operation: str, attempt: Callable[[], T]) -> T:
            return self._call(service, operation, attempt, seconds)

        return call

    def _call(self, service: str, operation: str, attempt: Callable[[], T], seconds: float) -> T:
        if not self._fits(seconds):
            raise NoTimeLeft(service, operation)
        try:
            return once(service, operation, attempt)
        except Unavailable as error:
            pause = self._jitter(*RETRY_PAUSE)
            if not may_pass(error.__cause__) or not self._fits(pause + seconds):
                raise
        self._sleep(pause)
        return once(service, operation, attempt)

    def _fits(self, seconds: float) -> bool:
        return self._monotonic() + seconds <= self._end
