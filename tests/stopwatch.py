"""How long a piece of work takes by itself, on a machine that has other things to do."""

import time
from pathlib import Path

# Linux: nanoseconds at work, nanoseconds ready for it, number of turns.
# https://docs.kernel.org/scheduler/sched-stats.html
SCHEDULE = Path("/proc/thread-self/schedstat")


class Stopwatch:
    """Tells the seconds since it was made, of the thread that made it.

    Without those in which the thread was ready and others had the processors, where the kernel
    tells them. Waiting for an answer, or sleeping, counts.
    """

    def __init__(self) -> None:
        self._begun = time.monotonic() - _delayed()

    @property
    def seconds(self) -> float:
        return time.monotonic() - _delayed() - self._begun


def _delayed() -> float:
    try:
        return int(SCHEDULE.read_text().split()[1]) / 1e9
    except OSError:
        return 0.0
