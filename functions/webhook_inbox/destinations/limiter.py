"""Rate limit: gives a run a time to come, and each call a time to begin.

A run that need not wait takes a slot on the timeline of starts. One that has to gets an
appointment on the other timeline and keeps it; when it comes it takes a slot among the
starts, before everybody who still waits. So one that comes late loses little, one that does
not come costs nothing but its appointment, and whatever comes when, calls begin as far apart
as the rate says.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
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

# How long a run waits in its process for its slot; for longer it is put off.
PATIENCE: Final = 2 * SECOND
# How long before its slot a run is to come: SQS delays whole seconds, so it comes up to one
# later, and waits for the rest.
LEAD: Final = 3 * SECOND // 2
# The most that a run is let come earlier, where its handler takes so long until it calls.
LONGEST_LEAD: Final = 30 * SECOND
# A message that somebody sent again may come long before its time, by 5 s for clocks alone.
SKEW: Final = 5 * SECOND
# What marks an appointment among a run's slots; no destination's name has it.
QUEUED: Final = "#queued"
# The slot of a run that has used the one it was given: it need not queue again.
USED: Final = 0


@dataclass(frozen=True, slots=True)
class Place:
    """What a run is given.

    Attributes:
        go: whether it may begin.
        due: when it is to come otherwise, in epoch microseconds.
        slots: what it keeps, in epoch milliseconds; under the destination's name a time to
            begin a call, and with `QUEUED` a time to come.
        limited: whether the rate alone is why it may not go, and it may be dropped for that.
    """

    go: bool
    due: int = 0
    slots: Mapping[str, int] = field(default_factory=dict)
    limited: bool = False


class Limiter:
    """The rate limits of all destinations, as one execution environment knows them."""

    def __init__(self, *, timelines: Timelines, clock: Clock) -> None:
        self._timelines = timelines
        self._clock = clock

    def place(
        self, pace: Pace, kept: Mapping[str, int], *, floor: int = 0, late: int = TOLERANCE // 2
    ) -> Place:
        """Gives a run its place.

        Args:
            pace: how fast the destination may be called.
            kept: the slots that the run was given earlier.
            floor: a time before which nothing begins, in epoch microseconds, because the
                destination is down; 0 for none.
            late: by how many microseconds a slot may be past already.

        Raises:
            Unavailable: the table failed.
        """
        now = microseconds(self._clock.now())
        earliest = max(floor, pace.resumes_at, now)
        valid = now - late if earliest == now else earliest
        name = pace.spec.name
        start = kept.get(name, USED) * MILLISECOND
        if start >= valid:
            return _at(pace, start, go=start <= now + LONGEST_LEAD + SKEW)
        appointment = kept.get(name + QUEUED, USED) * MILLISECOND
        if appointment > max(now + PATIENCE + SKEW, earliest):
            return _queued(pace, appointment)
        waited = name in kept or appointment > 0
        if earliest == now and not pace.limits(now):
            return Place(go=True, slots={name: USED} if waited else {})
        # Whom a pause or a circuit keeps is not dropped for the rate.
        soon = earliest <= now + PATIENCE
        below = now + PATIENCE if soon and not floor and pace.spec.on_limit != "queue" else None
        bounds = Bounds(earliest, valid, below)
        if waited:
            return self._start(pace, bounds)
        if soon:
            direct = replace(bounds, below=now + PATIENCE, unless_waiting=now)
            slot = self._timelines.reserve(Timeline.STARTED, pace, direct)
            if slot is not None:
                return _at(pace, slot, go=True)
        return self._queue(pace, bounds)

    def _queue(self, pace: Pace, bounds: Bounds) -> Place:
        """Places a run behind all who wait."""
        floor = max(bounds.floor, self._timelines.started(pace.spec.name))
        if bounds.below is not None:
            return Place(go=False, due=floor, limited=True)
        appointed = Bounds(floor, bounds.floor)
        appointment = self._timelines.reserve(Timeline.SCHEDULED, pace, appointed)
        now = microseconds(self._clock.now())
        if appointment is None or appointment <= now + PATIENCE:
            return self._start(pace, bounds)
        return _queued(pace, appointment)

    def _start(self, pace: Pace, bounds: Bounds) -> Place:
        """Gives a run that has waited the next start, however far ahead that is."""
        slot = self._timelines.reserve(Timeline.STARTED, pace, bounds)
        if slot is None:
            return Place(go=False, due=self._timelines.started(pace.spec.name), limited=True)
        now = microseconds(self._clock.now())
        return _at(pace, slot, go=slot <= now + PATIENCE)


def _at(pace: Pace, slot: int, *, go: bool) -> Place:
    return Place(go, slot - LEAD, {pace.spec.name: -(-slot // MILLISECOND)})


def _queued(pace: Pace, appointment: int) -> Place:
    at = -(-appointment // MILLISECOND)
    return Place(go=False, due=appointment - LEAD, slots={pace.spec.name + QUEUED: at})
