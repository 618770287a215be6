"""Rate limit: gives a run its turn, and each call a time to begin.

A run that comes for the first time takes a reservation on the timeline `SCHEDULED`. If that is near
it may begin, else it is its turn: the run comes again for it and keeps it. A call takes a reservation
on `STARTED` when it is made, whoever makes it, and waits for it. So calls begin as far apart
as the rate says, whatever comes when; and a run that is late, never comes or makes no call
costs nobody a reservation. Where the calls have fallen behind the turns, a run that has had its turn
gets another one on `RETURNING`, and whoever waits there goes before all others: nobody is
sent to the end of the queue.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from webhook_inbox.destinations.rate import MILLISECOND, SECOND, TOLERANCE, Pace, microseconds
from webhook_inbox.destinations.reservations import Bounds, Timeline, Timelines
from webhook_inbox.domain.ports import Clock

# How long before its turn a run is to come: SQS delays whole seconds, so it comes up to one
# later, and its call waits for the rest.
LEAD: Final = SECOND
# A message that somebody sent again may come long before its time, by 5 s for clocks alone.
SKEW: Final = 5 * SECOND
# What marks a turn among those who return; no destination's name has a "#".
AGAIN: Final = "#again"


@dataclass(frozen=True, slots=True)
class Turn:
    """When it is a run's turn, or was; in epoch microseconds, 0 for a run that never queued.

    `again` tells whether it is one of those who had theirs before.
    """

    at: int = 0
    again: bool = False

    @classmethod
    def of(cls, destination: str, reservations: Mapping[str, int]) -> "Turn":
        """Reads a run's reservations, which are in milliseconds."""
        again = reservations.get(destination + AGAIN, 0)
        return cls((again or reservations.get(destination, 0)) * MILLISECOND, again=bool(again))

    def keep(self, destination: str, reservations: dict[str, int]) -> None:
        """Writes it into a run's reservations."""
        reservations.pop(destination, None)
        reservations.pop(destination + AGAIN, None)
        if self.at:
            reservations[destination + AGAIN * self.again] = self.at // MILLISECOND


@dataclass(frozen=True, slots=True)
class Place:
    """What a run or a call is given.

    Attributes:
        go: whether it may begin; a call at `start`.
        turn: what the run keeps.
        start: when a call may begin, in epoch microseconds.
        retry_at: when it would do so where it may not wait: its destination's `on_limit` says
            that it is not queued. 0 otherwise.
    """

    go: bool
    turn: Turn = Turn()
    start: int = 0
    retry_at: int = 0

    @property
    def due(self) -> int:
        """When the run is to come again, in epoch microseconds."""
        return self.retry_at or self.turn.at - LEAD


class RateLimiter:
    """The rate limits of all destinations, as one execution environment knows them."""

    def __init__(self, *, timelines: Timelines, clock: Clock) -> None:
        self._timelines = timelines
        self._clock = clock

    def admit(self, pace: Pace, turn: Turn, *, floor: int = 0) -> Place:
        """Lets a run through, or tells when its turn is.

        Args:
            pace: how fast the destination may be called.
            turn: what the run kept.
            floor: a time before which nothing begins because the destination is down, in epoch
                microseconds; 0 for none. The run is not let through then.

        Raises:
            Unavailable: the table failed.
        """
        now = self._now()
        earliest = max(floor, pace.resumes_at, now)
        place = self._simple(pace, turn, earliest, now)
        if place is not None:
            return place
        if not turn.at:
            return self._queue(pace, earliest, now, floor=floor)
        if floor or earliest > now + pace.patience(now) or self._behind(pace, turn, now):
            return self._return(pace, earliest, now, floor=floor)
        return Place(go=True, turn=replace(turn, at=now))

    def begin(self, pace: Pace, turn: Turn, *, latest: int) -> Place:
        """Gives a call its time to begin, or tells when it is its run's turn.

        Args:
            pace: how fast the destination may be called.
            turn: what the run kept.
            latest: until when the call can wait, in epoch microseconds.

        Raises:
            Unavailable: the table failed.
        """
        now = self._now()
        earliest = max(pace.resumes_at, now)
        place = self._simple(pace, turn, earliest, now)
        if place is not None:
            return place
        if not turn.at:
            place = self._queue(pace, earliest, now)
            if not place.go:
                return place
        late = max(now - TOLERANCE, pace.resumes_at)
        reservation = self._timelines.reserve(
            Timeline.STARTED, pace, Bounds(earliest, late, latest + 1)
        )
        if reservation is None:
            return self._return(pace, earliest, now)
        return Place(go=True, turn=replace(turn, at=max(reservation, now)), start=reservation)

    def _simple(self, pace: Pace, turn: Turn, earliest: int, now: int) -> Place | None:
        """Returns the place of a run that nothing has to be reserved for."""
        if turn.at > max(now + pace.patience(now) + SKEW, earliest):
            return Place(go=False, turn=turn)
        if earliest == now and not pace.limits(now):
            return Place(go=True, turn=turn)
        return None

    def _queue(self, pace: Pace, earliest: int, now: int, *, floor: int = 0) -> Place:
        """Places a run behind all who wait; what is near enough need not come again."""
        below = None if self._waits(pace, earliest, now, floor) else now + pace.patience(now)
        first = max(earliest, self._ahead(pace))
        reservation = self._timelines.reserve(
            Timeline.SCHEDULED, pace, Bounds(first, earliest, below)
        )
        if reservation is None:
            ends = self._timelines.seen(pace.spec.name, Timeline.SCHEDULED)
            return Place(go=False, retry_at=max(first, ends))
        # Since this was seen, calls that nobody queued for may have gone ahead.
        turn = Turn(max(reservation, self._ahead(pace)))
        if turn.at < now + pace.patience(now) and not floor:
            return Place(go=True, turn=Turn(now))
        return Place(go=False, turn=turn)

    def _return(self, pace: Pace, earliest: int, now: int, *, floor: int = 0) -> Place:
        """Places a run that has had its turn, behind the others who have."""
        started = self._timelines.seen(pace.spec.name, Timeline.STARTED)
        first = max(earliest, started)
        if not self._waits(pace, earliest, now, floor):
            return Place(go=False, retry_at=first)
        reservation = self._timelines.reserve(Timeline.RETURNING, pace, Bounds(first, earliest))
        return Place(go=False, turn=Turn(reservation or first, again=True))

    def _waits(self, pace: Pace, earliest: int, now: int, floor: int) -> bool:
        # Whom a pause or a circuit keeps is not dropped for the rate.
        return pace.spec.on_limit == "queue" or floor > 0 or earliest > now + pace.patience(now)

    def _behind(self, pace: Pace, turn: Turn, now: int) -> bool:
        """Tells whether calls have fallen behind, or somebody goes first who has."""
        ends = [self._timelines.look(pace.spec.name, Timeline.STARTED)]
        if not turn.again:
            ends.append(self._timelines.seen(pace.spec.name, Timeline.RETURNING))
        return max(ends) > now + pace.patience(now, again=turn.again)

    def _ahead(self, pace: Pace) -> int:
        lines = (Timeline.STARTED, Timeline.RETURNING)
        return max(self._timelines.seen(pace.spec.name, line) for line in lines)

    def _now(self) -> int:
        return microseconds(self._clock.now())
