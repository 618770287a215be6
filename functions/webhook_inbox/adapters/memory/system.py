"""A clock, randomness and an executor for tests."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Final

from webhook_inbox.domain.errors import HandlerTimedOut
from webhook_inbox.domain.ports import Clock

START: Final = datetime(2026, 1, 1, tzinfo=UTC)


class ManualClock:
    """A clock that only `advance` and `sleep` move."""

    def __init__(self, start: datetime = START) -> None:
        self._now = start

    def now(self) -> datetime:
        """See the port."""
        return self._now

    def sleep(self, seconds: float) -> None:
        """Advances the clock instead of waiting."""
        self.advance(seconds=seconds)

    def advance(
        self, *, days: float = 0, hours: float = 0, minutes: float = 0, seconds: float = 0
    ) -> None:
        """Moves the time forward."""
        self._now += timedelta(days=days, hours=hours, minutes=minutes, seconds=seconds)


class SeededRandomness:
    """Returns the same tokens and numbers for the same seed."""

    def __init__(self, seed: int = 0) -> None:
        self._random = Random(seed)  # noqa: S311 - a double, and repeatable on purpose

    def token(self) -> str:
        """See the port."""
        return f"{self._random.getrandbits(128):032x}"

    def uniform(self, low: float, high: float) -> float:
        """See the port."""
        return self._random.uniform(low, high)


class InlineExecutor:
    """Runs the work in the calling thread.

    Work that moves the clock past the limit times out: its effects remain, and its result or error
    is lost.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    def run(self, work: Callable[[], None], *, seconds: float) -> None:
        """See the port."""
        end = self._clock.now() + timedelta(seconds=seconds)
        try:
            work()
        finally:
            if self._clock.now() > end:
                raise HandlerTimedOut(f"still running after {seconds:g} s")
