"""How long a piece of work takes by itself, on a machine that has other things to do."""

import time
from pathlib import Path

# Linux: nanoseconds at work, nanoseconds ready for it, number of turns.
# https://docs.kernel.org/scheduler/sched-stats.html
SCHEDULE = Path("/proc/thread-self/schedstat")


class Stopwatch:
    """Tells the seconds since it was made, of the thread that made it."""

    def __init__(self) -> None:
        self._begun, self._delayed = time.monotonic(), _delayed()

    @property
    def seconds(self) -> float:
        """The seconds without those in which others had the processors: for an upper bound.

        Those in which the thread was ready, where the kernel tells them. Waiting for an answer, or
        sleeping, counts.
        """
        return self.wall - (_delayed() - self._delayed)

    @property
    def wall(self) -> float:
        """All seconds: for a lower bound, since a time-out goes on while others work."""
        return time.monotonic() - self._begun


def _delayed() -> float:
    try:
        return int(SCHEDULE.read_text().split()[1]) / 1e9
    except OSError:
        return 0.0
