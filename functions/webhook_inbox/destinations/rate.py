"""The rate of a destination over time.

Times are whole epoch microseconds: at 1,000 calls a second, slots are one millisecond apart.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from math import ceil
from typing import Final

from webhook_inbox.destinations.circuit import Circuit
from webhook_inbox.domain.manifest import BreakerSpec, DestinationSpec
from webhook_inbox.domain.timestamps import EPOCH

SECOND: Final = 1_000_000
MILLISECOND: Final = 1_000
# Slots are this much further apart than the rate requires: a call may begin TOLERANCE after its
# slot, and clocks differ by up to 50 ms. The slots of 10.25 s begin within ten seconds.
HEADROOM: Final = 1.025
# Above this rate, a worker reserves blocks of slots. The two values of a row then take at most
# 800 writes a second; one DynamoDB partition takes 1,000. Larger blocks lapse in workers that
# call less than once in TOLERANCE.
WRITES: Final = 400
# The slow start after a pause: its end, the share of the rate, and the multiple of the drain rate
# where the destination has no rate.
SLOW: Final = ((30 * SECOND, 0.5, 1), (60 * SECOND, 0.75, 2))


def microseconds(moment: datetime) -> int:
    """Returns epoch microseconds."""
    return (moment - EPOCH) // timedelta(microseconds=1)


def moment(at: int) -> datetime:
    """Returns the aware UTC time of epoch microseconds."""
    return EPOCH + timedelta(microseconds=at)


@dataclass(frozen=True, slots=True)
class Pace:
    """The rate of a destination over time: slower after a pause and while its circuit drains."""

    spec: DestinationSpec
    circuit: Circuit

    @property
    def resumes_at(self) -> int:
        """When the last pause ends or ended."""
        return self.circuit.paused_until * MILLISECOND

    def limits(self, now: int) -> bool:
        """Returns whether calls need a slot at this time."""
        return self.spec.rate is not None or now < self.resumes_at + SLOW[-1][0]

    def step(self, at: int) -> int:
        """Returns the microseconds from a slot at this time to the next one."""
        drain = (self.spec.breaker or BreakerSpec()).drain
        # Without a rate, only runs that waited for a pause or a circuit need a slot.
        rate = SLOW[-1][2] * drain if self.spec.rate is None else self.spec.rate
        for lasts, share, drains in reversed(SLOW):
            if at < self.resumes_at + lasts:
                rate = drains * drain if self.spec.rate is None else share * self.spec.rate
        if self.circuit.open_until:
            rate = min(rate, drain)
        return ceil(HEADROOM * SECOND / rate)
