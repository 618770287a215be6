"""How long ingest waits for AWS: never so long that the provider hangs up first."""

import random
import time
from collections.abc import Callable
from typing import Final, TypeVar

from webhook_inbox.adapters.aws import errors
from webhook_inbox.domain.errors import Unavailable

T = TypeVar("T")

# Slack, Zoom and Discord want an answer within 3 s of their clock; half a second is the road.
TOTAL_SECONDS: Final = 2.5
RETRY_PAUSE: Final = (0.02, 0.08)


class TimeBudget:
    """The time of one invocation, shared by all its AWS calls.

    An attempt begins only while a whole one, its time-outs used up, still fits; so the answer
    is out in time whatever fails. A call that fails in passing is tried once more. Three things
    escape botocore's time-outs, and the function's own ends them: name resolution, a host with
    many unreachable addresses, and an answer that trickles in byte by byte.

    Args:
        total: seconds from `begin` to the latest end of the last attempt.
        monotonic: a clock that never goes back, in seconds.
        sleep: waits so many seconds.
        jitter: a random number between two.
    """

    def __init__(
        self,
        *,
        total: float = TOTAL_SECONDS,
        monotonic: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
        jitter: Callable[[float, float], float] = random.uniform,
    ) -> None:
        self._total = total
        self._monotonic = monotonic
        self._sleep = sleep
        self._jitter = jitter
        self.begin()

    def begin(self) -> None:
        """Starts the time anew; to be called first thing in every invocation."""
        self._end = self._monotonic() + self._total

    def attempts_of(self, seconds: float) -> errors.Caller:
        """Returns a caller for a client whose attempts take up to so many seconds."""

        def call(service: str, operation: str, attempt: Callable[[], T]) -> T:
            return self._call(service, operation, attempt, seconds)

        return call

    def _call(self, service: str, operation: str, attempt: Callable[[], T], seconds: float) -> T:
        if not self._fits(seconds):
            raise Unavailable(service, operation, "no time is left for an attempt")
        try:
            return errors.once(service, operation, attempt)
        except Unavailable as error:
            pause = self._jitter(*RETRY_PAUSE)
            if not errors.may_pass(error.__cause__) or not self._fits(pause + seconds):
                raise
        self._sleep(pause)
        return errors.once(service, operation, attempt)

    def _fits(self, seconds: float) -> bool:
        return self._monotonic() + seconds <= self._end
