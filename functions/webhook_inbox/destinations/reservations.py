"""Timelines of reservations, in a row that all workers share.

A timeline is one number: where its next reservation lies. To reserve is to move it on, by an ADD
that never fails for somebody else's; only when the timeline lies in the past is it set, and
then one worker wins and the others add to what it set. It never goes back.
"""

from collections import deque
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from webhook_inbox.destinations.circuit import expiry, limit_key
from webhook_inbox.destinations.rate import SECOND, Pace, Stage, microseconds
from webhook_inbox.domain.conditions import Absent, Condition, Less, Present, either, every
from webhook_inbox.domain.errors import ConditionFailed, Unavailable
from webhook_inbox.domain.ports import Change, Clock, Item, Table

# More than a reservation needs: a try fails only if the timeline crossed the present, or the
# end of a stage, since it was seen.
TRIES: Final = 8


class Timeline(StrEnum):
    """The timelines of a destination; the value is the attribute."""

    SCHEDULED = "scheduled"  # when it is whose turn
    RETURNING = "returning"  # the same for those who had theirs, and could make no call
    STARTED = "started"  # when calls begin


@dataclass(frozen=True, slots=True)
class Bounds:
    """Which reservation will do.

    Attributes:
        floor: not before it.
        late: a reservation of an earlier block will do if it is no earlier than this.
        below: only before it; None: however late.
    """

    floor: int
    late: int
    below: int | None = None


@dataclass(slots=True)
class _Block:
    """Reservations that were reserved in one write, and are used one after the other."""

    reservations: deque[int]
    size: int
    lapsed: int = 0

    def take(self, bounds: Bounds) -> int | None:
        """Returns its next reservation if that will do; those that are too late are dropped."""
        while self.reservations and self.reservations[0] < bounds.late:
            self.reservations.popleft()
            self.lapsed += 1
        if not self.reservations or (
            bounds.below is not None and self.reservations[0] >= bounds.below
        ):
            return None
        return self.reservations.popleft()

    def following(self, stage: Stage) -> int:
        """Returns the size of the next one: what was used of this one, or twice as many."""
        wanted = self.size - self.lapsed if self.lapsed else 2 * self.size
        return min(stage.block, max(stage.least, wanted))


@dataclass(slots=True)
class _Known:
    """What this environment last saw of a row, and what it has left of its blocks."""

    row: Item = field(default_factory=dict)
    seen_at: int = 0
    blocks: dict[Timeline, _Block] = field(default_factory=dict)


class Timelines:
    """Reserves reservations."""

    def __init__(self, *, table: Table, clock: Clock) -> None:
        self._table = table
        self._clock = clock
        self._known: dict[str, _Known] = {}

    def seen(self, destination: str, timeline: Timeline) -> int:
        """Returns how far a timeline went when the row was last seen; 0 if that is long ago."""
        end: int = self._fresh(destination).row.get(timeline, 0)
        return end

    def look(self, destination: str, timeline: Timeline) -> int:
        """Returns how far a timeline goes, as it was at most a second ago.

        Raises:
            Unavailable: the table failed.
        """
        known = self._fresh(destination)
        if not known.row:
            self._see(known, self._table.get(limit_key(destination)) or {})
        return self.seen(destination, timeline)

    def reserve(self, timeline: Timeline, pace: Pace, bounds: Bounds) -> int | None:
        """Returns a reservation within the bounds, or None if the next one lies beyond them.

        Raises:
            Unavailable: the table failed; reservations may have been reserved, which then lapse.
        """
        known = self._fresh(pace.spec.name)
        block = known.blocks.get(timeline)
        kept = block.take(bounds) if block else None
        if kept is not None:
            return kept
        for _ in range(TRIES):
            at = max(known.row.get(timeline, 0), bounds.floor)
            if bounds.below is not None and at >= bounds.below:
                return None
            if self._move(known, timeline, at, pace, bounds):
                return known.blocks[timeline].reservations.popleft()
        raise Unavailable("dynamodb", "UpdateItem", f"{limit_key(pace.spec.name).pk} is contended")

    def _move(self, known: _Known, timeline: Timeline, at: int, pace: Pace, bounds: Bounds) -> bool:
        stage = pace.stage(at)
        block = known.blocks.get(timeline)
        size = block.following(stage) if block else stage.least
        length = stage.step * size
        # What was seen is at most behind, since no timeline goes back: one that was seen at the
        # floor is there still, unless its row was deleted.
        ahead = known.row.get(timeline, 0) >= bounds.floor
        behind = either(Absent(timeline), Less(timeline, bounds.floor))
        expires = expiry(self._clock.now())
        change = (
            Change(set=expires, add={timeline.value: length})
            if ahead
            else Change(set={timeline.value: at + length, **expires})
        )
        when = every(Present(timeline) if ahead else behind, *_limits(timeline, stage, bounds))
        key = limit_key(pace.spec.name)
        try:
            row = self._table.update(key, change, when=when)
        except ConditionFailed as error:
            self._see(known, error.old or {})
            return False
        self._see(known, row)
        first = row[timeline] - length
        reservations = deque(first + n * stage.step for n in range(size))
        known.blocks[timeline] = _Block(reservations, size)
        return True

    def _fresh(self, destination: str) -> _Known:
        known = self._known.setdefault(destination, _Known())
        if not 0 <= microseconds(self._clock.now()) - known.seen_at < SECOND:
            known.row = {}
        return known

    def _see(self, known: _Known, row: Item) -> None:
        known.row, known.seen_at = row, microseconds(self._clock.now())


def _limits(timeline: Timeline, stage: Stage, bounds: Bounds) -> list[Condition]:
    """Returns the conditions under which a reservation is of this stage and within bounds."""
    ends = [end for end in (stage.until, bounds.below) if end is not None]
    return [either(Absent(timeline), Less(timeline, min(ends)))] if ends else []
