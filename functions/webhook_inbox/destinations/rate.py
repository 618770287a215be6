"""How fast a destination may be called, and when.

Times are whole epoch microseconds here, since a thousand calls a second are a millisecond
apart.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from math import ceil
from typing import Final

from webhook_inbox.destinations.circuit import Circuit
from webhook_inbox.domain.manifest import BreakerSpec, DestinationSpec
from webhook_inbox.domain.timestamps import EPOCH

SECOND: Final = 1_000_000
MILLISECOND: Final = 1_000
# Starts are planned so much slower than the rate, because a start may come TOLERANCE after its
# reservation, and 50 ms are for clocks that differ: ten seconds of reservations begin in 10.25 s of reservations.
HEADROOM: Final = 1.025
# How long after its reservation a call may still begin.
TOLERANCE: Final = SECOND // 5
# How long a call waits in its process for its reservation; for longer its run is put off. At least two
# steps, within reason: with less nobody would be there when the next reservation comes.
PATIENCE: Final = 2 * SECOND
MOST_PATIENCE: Final = 5 * SECOND
# Above so many calls a second, workers reserve several reservations at once. One that lets some lapse
# reserves fewer, but there are never more reservations than half of what one row can take.
RESERVATIONS: Final = 200
MOST_RESERVATIONS: Final = 500
# After a pause: until when it goes slowly, at which share of the rate, and at how many times
# the drain rate where there is no rate.
SLOW: Final = ((30 * SECOND, 0.5, 1), (60 * SECOND, 0.75, 2))


def microseconds(moment: datetime) -> int:
    """Returns epoch microseconds."""
    return (moment - EPOCH) // timedelta(microseconds=1)


def moment(at: int) -> datetime:
    """Returns the aware UTC time of epoch microseconds."""
    return EPOCH + timedelta(microseconds=at)


@dataclass(frozen=True, slots=True)
class Stage:
    """A time with one rate.

    Attributes:
        step: microseconds from one reservation to the next.
        block: how many reservations a worker reserves at once, at most.
        least: how many at least.
        until: when the stage ends; None for never.
    """

    step: int
    block: int
    least: int
    until: int | None = None


@dataclass(frozen=True, slots=True)
class Pace:
    """A destination's rate over time: its own, slower after a pause, drained when it was open."""

    spec: DestinationSpec
    circuit: Circuit

    @property
    def resumes_at(self) -> int:
        """When the last pause ends or ended."""
        return self.circuit.paused_until * MILLISECOND

    def limits(self, now: int) -> bool:
        """Tells whether calls need a reservation at this time."""
        return self.spec.rate is not None or now < self.resumes_at + SLOW[-1][0]

    def patience(self, now: int, *, again: bool = False) -> int:
        """Returns how many microseconds a call waits in its process for its reservation.

        Twice as many in a run that has been put off in spite of its turn: put off once more it
        would be overtaken by those behind it.
        """
        steps = int(2 * self.stage(now).step / HEADROOM)
        patience = min(max(PATIENCE, steps), MOST_PATIENCE)
        return 2 * patience if again else patience

    def stage(self, at: int) -> Stage:
        """Returns the rate of reservations from this time on."""
        for until, planned in self._rates():
            if until is None or at < until:
                rate = min(planned, self._drain) if self.circuit.open_until else planned
                return Stage(
                    step=ceil(HEADROOM * SECOND / rate),
                    block=ceil(rate / RESERVATIONS),
                    least=ceil(rate / MOST_RESERVATIONS),
                    until=until,
                )
        raise AssertionError("the last stage never ends")

    def _rates(self) -> Iterator[tuple[int | None, float]]:
        for lasts, share, drains in SLOW:
            rate = self.spec.rate
            yield self.resumes_at + lasts, drains * self._drain if rate is None else share * rate
        # Where there is no rate, only who waited for a pause or a circuit needs a reservation.
        yield None, SLOW[-1][2] * self._drain if self.spec.rate is None else self.spec.rate

    @property
    def _drain(self) -> float:
        return (self.spec.breaker or BreakerSpec()).drain
