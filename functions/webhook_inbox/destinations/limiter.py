"""Rate limit: gives a run a time to come, and each call a time to begin.

There are two timelines. A run that comes for the first time takes a slot on `SCHEDULED`: if
that is near it may begin, else it is its appointment, and it comes again for it. Every call
takes a slot on `STARTED` when it is made, whoever makes it, and waits for it. So calls begin
as far apart as the rate says, whatever comes when; a run that had its appointment is never
sent to the end of the queue, however late it comes; and one that does not come, or makes no
call, costs nobody a slot.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from webhook_inbox.destinations.pace import (
    MILLISECOND,
    SECOND,
    TOLERANCE,
    Pace,
    microseconds,
)
from webhook_inbox.destinations.timeline import Bounds, Timeline, Timelines
from webhook_inbox.ports import Clock

# How long a call waits in its process for its slot; for longer its run is put off.
PATIENCE: Final = 2 * SECOND
# How long before its slot a run is to come: SQS delays whole seconds, so it comes up to one
# later, and its call waits for the rest.
LEAD: Final = SECOND
# The most that is allowed for how long its handler takes until it calls.
LONGEST_LEAD: Final = 20 * SECOND
# A message that somebody sent again may come long before its time, by 5 s for clocks alone.
SKEW: Final = 5 * SECOND
# What else is kept of a run than when a call may begin; no destination's name has a "#".
QUEUED: Final = "#queued"  # its appointment
ADMITTED: Final = "#admitted"  # when it was let through


@dataclass(frozen=True, slots=True)
class Place:
    """What a run or a call is given; times in epoch microseconds, 0 for none.

    Attributes:
        go: whether the run may begin; a call may only at `start`, too.
        due: when the run is to come again otherwise.
        start: when its call may begin.
        appointment: when its turn comes.
        admitted: when it was let through.
        limited: whether the rate alone is why it may not go, and it may not wait for it.
    """

    go: bool
    due: int = 0
    start: int = 0
    appointment: int = 0
    admitted: int = 0
    limited: bool = False

    def keep(self, destination: str, slots: dict[str, int]) -> None:
        """Writes into a run's slots what it keeps for this destination, in milliseconds."""
        times = {"": self.start, QUEUED: self.appointment, ADMITTED: self.admitted}
        for suffix, at in times.items():
            slots.pop(destination + suffix, None)
            if at:
                slots[destination + suffix] = at // MILLISECOND


@dataclass(frozen=True, slots=True)
class Held:
    """What a run holds of earlier times; in epoch microseconds, 0 for nothing."""

    start: int
    appointment: int
    admitted: int

    @classmethod
    def of(cls, destination: str, slots: Mapping[str, int]) -> "Held":
        """Reads a run's slots."""
        suffixes = ("", QUEUED, ADMITTED)
        return cls(*(slots.get(destination + suffix, 0) * MILLISECOND for suffix in suffixes))

    @property
    def waited(self) -> bool:
        """Whether the run has had its turn, and need not queue for it again."""
        return bool(self.start or self.appointment or self.admitted)


class Limiter:
    """The rate limits of all destinations, as one execution environment knows them."""

    def __init__(self, *, timelines: Timelines, clock: Clock) -> None:
        self._timelines = timelines
        self._clock = clock

    def admit(self, pace: Pace, kept: Mapping[str, int], *, floor: int = 0) -> Place:
        """Lets a run through, or tells when it is to come.

        Args:
            pace: how fast the destination may be called.
            kept: the slots that the run was given earlier.
            floor: a time before which nothing begins because the destination is down, in epoch
                microseconds; 0 for none. The run is not let through then.

        Raises:
            Unavailable: the table failed.
        """
        now = microseconds(self._clock.now())
        held = Held.of(pace.spec.name, kept)
        earliest = max(floor, pace.resumes_at, now)
        place = self._known(pace, held, earliest, earliest)
        if place is not None:
            return replace(place, admitted=now) if place.go and held.waited else place
        bounds = self._bounds(pace, earliest, now, floor=floor)
        if not held.waited:
            return self._queue(pace, bounds)
        if floor or earliest > now + PATIENCE or self._crowded(pace, now):
            place = self._start(pace, bounds)
            return replace(place, admitted=now) if place.go else place
        return Place(go=True, admitted=now)

    def begin(self, pace: Pace, kept: Mapping[str, int]) -> Place:
        """Gives a call its time to begin, or tells when its run is to come.

        Raises:
            Unavailable: the table failed.
        """
        now = microseconds(self._clock.now())
        held = Held.of(pace.spec.name, kept)
        earliest = max(pace.resumes_at, now)
        place = self._known(pace, held, earliest, max(earliest - TOLERANCE, pace.resumes_at))
        if place is not None:
            return place
        bounds = self._bounds(pace, earliest, now)
        if not held.waited:
            place = self._queue(pace, bounds)
            if not place.go:
                return place
            held = replace(held, admitted=now)
        place = self._start(pace, bounds)
        return replace(place, admitted=held.admitted) if place.go else place

    def _known(self, pace: Pace, held: Held, earliest: int, valid: int) -> Place | None:
        """Returns the place that a run has already, or that of one that needs none."""
        now = microseconds(self._clock.now())
        if held.start >= valid:
            go = held.start <= now + LONGEST_LEAD + SKEW
            return Place(go, held.start - LEAD, start=held.start, admitted=held.admitted)
        if held.appointment > max(now + PATIENCE + SKEW, earliest):
            return _queued(held.appointment)
        if earliest == now and not pace.limits(now):
            return Place(go=True, admitted=held.admitted)
        return None

    def _bounds(self, pace: Pace, earliest: int, now: int, *, floor: int = 0) -> Bounds:
        late = max(earliest - TOLERANCE, pace.resumes_at)
        # Whom a pause or a circuit keeps is not dropped for the rate.
        waits = floor or earliest > now + PATIENCE or pace.spec.on_limit == "queue"
        return Bounds(earliest, late, None if waits else now + PATIENCE)

    def _queue(self, pace: Pace, bounds: Bounds) -> Place:
        """Places a run behind all who wait; what is near enough need not."""
        name = pace.spec.name
        floor = max(bounds.floor, self._timelines.seen(name, Timeline.STARTED))
        turn = self._timelines.reserve(Timeline.SCHEDULED, pace, replace(bounds, floor=floor))
        if turn is None:
            due = max(floor, self._timelines.seen(name, Timeline.SCHEDULED))
            return Place(go=False, due=due, limited=True)
        now = microseconds(self._clock.now())
        # Calls that nobody queued for, a run's second one for example, may have gone ahead.
        turn = max(turn, self._timelines.seen(name, Timeline.STARTED))
        return Place(go=True, admitted=now) if turn < now + PATIENCE else _queued(turn)

    def _crowded(self, pace: Pace, now: int) -> bool:
        return self._timelines.look(pace.spec.name, Timeline.STARTED) > now + PATIENCE

    def _start(self, pace: Pace, bounds: Bounds) -> Place:
        """Gives a run that has had its turn the next start, however far ahead that is."""
        slot = self._timelines.reserve(Timeline.STARTED, pace, bounds)
        if slot is None:
            due = self._timelines.seen(pace.spec.name, Timeline.STARTED)
            return Place(go=False, due=due, limited=True)
        now = microseconds(self._clock.now())
        start = slot // MILLISECOND * MILLISECOND  # as a run keeps it
        return Place(start <= now + PATIENCE, start - LEAD, start=start)


def _queued(appointment: int) -> Place:
    return Place(go=False, due=appointment - LEAD, appointment=appointment)
