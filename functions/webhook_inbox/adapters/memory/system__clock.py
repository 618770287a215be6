"""A clock that goes when told to."""

from datetime import UTC, datetime, timedelta
from typing import Final

START: Final = datetime(2026, 1, 1, tzinfo=UTC)


class ManualClock:
    """The time is `start` until it is advanced; to sleep is to advance."""

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
