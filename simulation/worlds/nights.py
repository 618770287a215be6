"""Nights: a destination is down for hours while runs wait for it; only `drain` is not the default.

A night is one schedule, too long to explore: it has tens of thousands of steps.
"""

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Night:
    """An outage of a destination.

    Attributes:
        name: the name on the command line.
        runs: the runs that wait for the destination, of one event each.
        serial: whether their handler keeps order, in a FIFO lane.
        keys: the ordering keys of the events.
        failing: the events whose requests the destination answers 503; 0 for all of them.
        flaps: whether the destination answers one call after each recovery, and fails the next.
        hours: the length of the outage.
        drain: the runs a second that look again; with the default of 5, a thousand runs cost four
            minutes of CPU.
    """

    name: str
    runs: int
    serial: bool = False
    keys: int = 1
    failing: int = 0
    flaps: bool = False
    hours: float = 12
    drain: float = 5


NIGHTS: Final = (
    Night("a night with one run", runs=1),
    Night("a night with 20 runs", runs=20),
    Night("a night with 1,000 runs", runs=1000, drain=1),
    Night("a night of a serial lane with one run", runs=1, serial=True),
    Night("a night of a serial lane with 20 runs", runs=20, serial=True, keys=7),
    Night("a night of a serial lane with 1,000 runs", runs=1000, serial=True, keys=40, drain=1),
    # The destination answers a run in each recovery: an hour leaves some of them.
    Night("an hour of a flapping destination", runs=100, flaps=True, hours=1),
    Night("an hour with 20 requests that always fail", runs=30, failing=20, hours=1),
)
