"""Timelines of slots, in a row that all workers share.

A timeline is one number: where its next slot lies. To reserve is to move it on, by an ADD
that never fails for somebody else's; only when the timeline lies in the past is it set, and
then one worker wins and the others add to what it set. It never goes back.
"""

from collections import deque
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from webhook_inbox.conditions import Absent, Condition, Less, Present, either, every
from webhook_inbox.destinations.circuit import expiry, limit_key
from webhook_inbox.destinations.pace import SECOND, Pace, Stage, microseconds
from webhook_inbox.errors import ConditionFailed, Unavailable
from webhook_inbox.ports import Change, Clock, Item, Table

# More than a reservation needs: a try fails only if the timeline crossed the present, or the
# end of a stage, since it was seen.
TRIES: Final = 8


class Timeline(StrEnum):
    """The two timelines of a destination; the value is the attribute."""

    SCHEDULED = "scheduled"  # when runs that wait are to come
    STARTED = "started"  # when calls begin


@dataclass(frozen=True, slots=True)
class Bounds:
    """Which slot will do.

    Attributes:
        floor: not before it.
        late: a slot of an earlier block will do if it is no earlier than this.
        below: only before it; None: however late.
        unless_waiting: not if a run is scheduled at or after this time; None: even then.
    """

    floor: int
    late: int
    below: int | None = None
    unless_waiting: int | None = None


@dataclass(slots=True)
class _Known:
    """What this environment last saw of a row, and what it has left of its blocks."""

    row: Item = field(default_factory=dict)
    seen_at: int = 0
    slots: dict[Timeline, deque[int]] = field(default_factory=dict)


class Timelines:
    """Reserves slots."""

    def __init__(self, *, table: Table, clock: Clock) -> None:
        self._table = table
        self._clock = clock
        self._known: dict[str, _Known] = {}

    def started(self, destination: str) -> int:
        """Returns how far calls are known to be planned."""
        known = self._known.get(destination)
        return known.row.get(Timeline.STARTED, 0) if known else 0

    def reserve(self, timeline: Timeline, pace: Pace, bounds: Bounds) -> int | None:
        """Returns a slot within the bounds, or None if the next one lies beyond them.

        Raises:
            Unavailable: the table failed; slots may have been reserved, which then lapse.
        """
        known = self._known.setdefault(pace.spec.name, _Known())
        kept = _left(known, timeline, bounds)
        if kept is not None:
            return kept
        now = microseconds(self._clock.now())
        if not 0 <= now - known.seen_at < SECOND:
            known.row = {}
        for _ in range(TRIES):
            at = max(known.row.get(timeline, 0), bounds.floor)
            if _beyond(known.row, at, bounds):
                return None
            if self._move(known, timeline, at, pace, bounds):
                return known.slots[timeline].popleft()
        raise Unavailable("dynamodb", "UpdateItem", f"{limit_key(pace.spec.name).pk} is contended")

    def _move(self, known: _Known, timeline: Timeline, at: int, pace: Pace, bounds: Bounds) -> bool:
        stage = pace.stage(at)
        length = stage.step * stage.block
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
        known.slots[timeline] = deque(first + n * stage.step for n in range(stage.block))
        return True

    def _see(self, known: _Known, row: Item) -> None:
        known.row, known.seen_at = row, microseconds(self._clock.now())


def _left(known: _Known, timeline: Timeline, bounds: Bounds) -> int | None:
    """Returns the next slot of a block that was reserved before; those that lapsed are dropped."""
    slots = known.slots.get(timeline, deque())
    while slots and slots[0] < bounds.late:
        slots.popleft()
    if not slots or (bounds.below is not None and slots[0] >= bounds.below):
        return None
    return slots.popleft()


def _beyond(row: Item, at: int, bounds: Bounds) -> bool:
    if bounds.below is not None and at >= bounds.below:
        return True
    waiting = bounds.unless_waiting
    return waiting is not None and row.get(Timeline.SCHEDULED, 0) >= waiting


def _limits(timeline: Timeline, stage: Stage, bounds: Bounds) -> list[Condition]:
    """Returns the conditions under which a reservation is of this stage and within bounds."""
    ends = [end for end in (stage.until, bounds.below) if end is not None]
    clauses: list[Condition] = []
    if ends:
        clauses.append(either(Absent(timeline), Less(timeline, min(ends))))
    if bounds.unless_waiting is not None:
        none = Less(Timeline.SCHEDULED, bounds.unless_waiting)
        clauses.append(either(Absent(Timeline.SCHEDULED), none))
    return clauses
