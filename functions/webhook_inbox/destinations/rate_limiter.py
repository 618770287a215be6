"""Rate limiter: reserves a slot for each call, and a time to return for each run that waits.

The row `destination#{name}` / `limit` has two values. `next_slot` is when the next call may
begin: each call takes a slot when it is made and waits for it in its process, so no window has
more calls than the rate allows. `next_reservation` is when the next waiting run returns. A run
keeps its reservation until it returns, and makes its calls from then on. Decision 19 says why
one value cannot serve both purposes. Times are whole epoch microseconds.
"""

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from math import ceil
from typing import Any, Final

from webhook_inbox.destinations.circuit import Circuit, expiry, limit_key
from webhook_inbox.domain.conditions import Absent, Condition, Less, Present, either, every
from webhook_inbox.domain.errors import ConditionFailed, Unavailable
from webhook_inbox.domain.manifest import BreakerSpec, DestinationSpec
from webhook_inbox.domain.ports import Change, Clock, Table
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
SLOT: Final = "next_slot"
RESERVATION: Final = "next_reservation"
# How long before its reservation a run returns. SQS delays whole seconds, so the run arrives up
# to one second later than asked.
LEAD: Final = SECOND
# A new run begins at once if its reservation is nearer than this.
NEAR: Final = 2 * SECOND
# How long a call waits in its process for its slot; its run is deferred for a later one. A run
# that returns begins if slots are NEAR less than this ahead: its own calls need the difference.
PATIENCE: Final = 8 * SECOND
# How long after its slot a call may still begin.
TOLERANCE: Final = SECOND // 5
# A duplicate message may arrive long before the reservation; clocks differ by less than this.
SKEW: Final = 5 * SECOND
# A write fails only if the value crossed the present since it was read.
TRIES: Final = 8


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


@dataclass(frozen=True, slots=True)
class Place:
    """The answer to a run or a call; times in epoch microseconds, 0 for none.

    Attributes:
        go: whether it may begin.
        reservation: the reservation that the run keeps.
        start: the slot of a call.
        retry_at: when it could begin, where `on_limit` forbids it to queue.
    """

    go: bool
    reservation: int = 0
    start: int = 0
    retry_at: int = 0

    @property
    def due(self) -> int:
        """When the run returns."""
        return self.retry_at or self.reservation - LEAD


@dataclass(slots=True)
class _Known:
    """The row as this environment last saw it, and the unused rest of its blocks."""

    row: Mapping[str, Any] = field(default_factory=dict)
    seen_at: int = 0
    blocks: dict[str, deque[int]] = field(default_factory=dict)


class RateLimiter:
    """The rate limits of all destinations, as one execution environment knows them."""

    def __init__(self, *, table: Table, clock: Clock) -> None:
        self._table = table
        self._clock = clock
        self._known: dict[str, _Known] = {}

    def admit(self, pace: Pace, reservation: int, *, floor: int = 0) -> Place:
        """Admits a run, or returns its reservation.

        Args:
            pace: the destination's rate.
            reservation: the one that the run kept; 0 for none.
            floor: when the circuit of a destination that is down may be probed; the run is not
                admitted before. 0 for a destination that is not down.

        Raises:
            Unavailable: the table failed.
        """
        now = self._now()
        place = self._unlimited(pace, reservation, now, floor)
        if place is not None:
            return place
        earliest, near = max(floor, pace.resumes_at, now), now if floor else now + NEAR
        if reservation and earliest <= near and self._read(pace, SLOT) <= now + PATIENCE - NEAR:
            return Place(go=True, reservation=now)
        return self._queue(pace, earliest, near=near)

    def begin(self, pace: Pace, reservation: int, *, latest: int) -> Place:
        """Reserves the slot of a call, or returns when its run returns.

        Args:
            pace: the destination's rate.
            reservation: the one that the run kept; 0 for none.
            latest: until when the call can wait.

        Raises:
            Unavailable: the table failed.
        """
        now = self._now()
        place = self._unlimited(pace, reservation, now, 0)
        if place is not None:
            return place
        earliest = max(pace.resumes_at, now)
        if not reservation:
            place = self._queue(pace, earliest, near=now + NEAR)
            if not place.go:
                return place
        late = max(now - TOLERANCE, pace.resumes_at)
        slot = self._reserve(SLOT, pace, earliest, late=late, below=latest + 1)
        if slot is None:
            return self._queue(pace, earliest, near=now)
        return Place(go=True, reservation=max(slot, now), start=slot)

    def queue_length(self, pace: Pace) -> int:
        """Returns the microseconds until the last reservation, 0 if no run waits.

        Raises:
            Unavailable: the table failed.
        """
        return max(self._read(pace, RESERVATION) - self._now(), 0)

    def _unlimited(self, pace: Pace, reservation: int, now: int, floor: int) -> Place | None:
        """Returns the place of a run for which nothing has to be reserved."""
        earliest = max(floor, pace.resumes_at, now)
        if reservation > max(now + NEAR + SKEW, earliest):
            return Place(go=False, reservation=reservation)
        if earliest == now and not pace.limits(now):
            return Place(go=True, reservation=reservation)
        return None

    def _queue(self, pace: Pace, earliest: int, *, near: int) -> Place:
        """Reserves a place behind all waiting runs; a run whose place is near may begin."""
        # `on_limit` does not apply to a run that waits for a pause or a circuit.
        queues = pace.spec.on_limit == "queue" or earliest > near
        slot = self._seen(pace, SLOT) if queues else self._read(pace, SLOT)
        first = max(earliest, slot)
        at = self._reserve(RESERVATION, pace, first, late=earliest, below=None if queues else near)
        if at is None:
            return Place(go=False, retry_at=max(first, self._seen(pace, RESERVATION)))
        # The write has returned the row: calls may have taken slots since it was read.
        at = max(at, self._seen(pace, SLOT))
        if at < near:
            return Place(go=True, reservation=self._now())
        return Place(go=False, reservation=at) if queues else Place(go=False, retry_at=at)

    def _seen(self, pace: Pace, value: str) -> int:
        """Returns a value as it was at most a second ago; 0 where it was not read since."""
        at: int = self._fresh(pace).row.get(value, 0)
        return at

    def _read(self, pace: Pace, value: str) -> int:
        known = self._fresh(pace)
        if not known.row:
            self._see(known, self._table.get(limit_key(pace.spec.name)) or {})
        return self._seen(pace, value)

    def _reserve(
        self, value: str, pace: Pace, floor: int, *, late: int, below: int | None
    ) -> int | None:
        """Returns a reserved time, or None if the next one is not below the bound.

        Args:
            value: the value that is moved.
            pace: the destination's rate.
            floor: no new reservation is earlier.
            late: no unused one of an earlier block is earlier.
            below: the bound; None for none.

        Raises:
            Unavailable: the table failed; the reserved times may lapse.
        """
        known = self._fresh(pace)
        block = known.blocks.setdefault(value, deque())
        while block and block[0] < late:
            block.popleft()
        for _ in range(TRIES):
            at = block[0] if block else max(known.row.get(value, 0), floor)
            if below is not None and at >= below:
                return None
            if block or self._move(known, value, at, pace, floor, below):
                return block.popleft()
        raise Unavailable("dynamodb", "UpdateItem", f"{limit_key(pace.spec.name).pk} is contended")

    def _move(
        self, known: _Known, value: str, at: int, pace: Pace, floor: int, below: int | None
    ) -> bool:
        """Moves a value forward by one block; False if it has crossed a bound."""
        step = pace.step(at)
        size = ceil(SECOND / WRITES / step)
        expires = expiry(self._clock.now())
        # No value moves back: one that was seen beyond the floor is there still, unless its row
        # was deleted. An ADD cannot fail because of another worker's; of several SETs one wins.
        if known.row.get(value, 0) >= floor:
            change = Change(set=expires, add={value: size * step})
            when: Condition = Present(value)
        else:
            change = Change(set={value: at + size * step, **expires})
            when = either(Absent(value), Less(value, floor))
        if below is not None:
            when = every(when, either(Absent(value), Less(value, below)))
        try:
            row = self._table.update(limit_key(pace.spec.name), change, when=when)
        except ConditionFailed as error:
            self._see(known, error.old or {})
            return False
        self._see(known, row)
        known.blocks[value].extend(row[value] - n * step for n in range(size, 0, -1))
        return True

    def _fresh(self, pace: Pace) -> _Known:
        known = self._known.setdefault(pace.spec.name, _Known())
        if not 0 <= self._now() - known.seen_at < SECOND:
            known.row = {}
        return known

    def _see(self, known: _Known, row: Mapping[str, Any]) -> None:
        known.row, known.seen_at = row, self._now()

    def _now(self) -> int:
        return microseconds(self._clock.now())
