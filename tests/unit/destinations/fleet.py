"""Several workers, one destination and one table, event by event in the order of true time.

A worker is an execution environment: a gate with a cache and a clock of its own, and one run
at a time. What waits comes again as SQS brings it: after whole seconds, and rarely to the
moment.
"""

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from heapq import heappop, heappush
from math import ceil
from random import Random

from tests.unit.support.world import World
from webhook_inbox.adapters.memory.system import START, ManualClock, SeededRandomness
from webhook_inbox.destinations.circuit import CallOutcome
from webhook_inbox.destinations.gate import Gate
from webhook_inbox.domain.errors import Deferred
from webhook_inbox.domain.manifest import DestinationSpec

WINDOW = 10.0
# Makes the call of a run.
PATIENT = timedelta(seconds=45)


@dataclass(slots=True)
class Visit:
    """A run on its way: when it came first, what it keeps, and when its call began."""

    came: float
    reservations: dict[str, int] = field(default_factory=dict)
    began: float | None = None
    own: float = 0.0  # seconds that it was late itself, or its handler took until its call
    trips: int = 0
    calls: list[float] = field(default_factory=list)

    @property
    def waited(self) -> float:
        """Seconds that it waited for others."""
        assert self.began is not None
        return self.began - self.came - self.own


@dataclass(slots=True)
class Worker:
    gate: Gate
    clock: ManualClock
    skew: float

    def set(self, time: float) -> None:
        behind = START + timedelta(seconds=time + self.skew) - self.clock.now()
        self.clock.advance(seconds=behind.total_seconds())

    def time(self) -> float:
        return (self.clock.now() - START).total_seconds() - self.skew


@dataclass(frozen=True, slots=True)
class Habits:
    """How long everything takes, in seconds; each is drawn evenly from 0 or `low` to this."""

    workers: int = 40
    skew: float = 0.005
    handler: float = 0.1
    call: float = 0.2
    jitter: float = 0.3
    late_share: float = 0.0
    late: float = 20.0
    calls: int = 1  # by a handler, and all of them again after it was deferred


class Fleet:
    def __init__(
        self,
        spec: DestinationSpec,
        habits: Habits,
        *,
        seed: int = 0,
        answer: Callable[[float], CallOutcome] = lambda _: CallOutcome.ok(),
    ) -> None:
        self.spec = spec
        self.habits = habits
        world = World()
        self._ports, self.table = world.ports, world.table
        self.randomness = Random(seed)
        self.answer = answer
        self.visits: list[Visit] = []
        self._events: list[tuple[float, int, Callable[[float], None]]] = []
        self._queue: deque[Visit] = deque()
        self._idle = [self._worker(n) for n in range(habits.workers)]

    def run(self, arrivals: Sequence[float], *, end: float = 100_000.0) -> list[Visit]:
        """Lets a run come at each of these times, and returns them when all have begun."""
        for time in sorted(arrivals):
            visit = Visit(time)
            self.visits.append(visit)
            self._at(time, self._comes(visit))
        while self._events:
            time, _, action = heappop(self._events)
            assert time < end, f"{sum(v.began is None for v in self.visits)} still wait"
            action(time)
        return self.visits

    def _worker(self, number: int) -> Worker:
        skew = self.randomness.uniform(-self.habits.skew, self.habits.skew)
        clock = ManualClock(START + timedelta(seconds=skew))
        gate = Gate(replace(self._ports, clock=clock, randomness=SeededRandomness(number)))
        return Worker(gate, clock, skew)

    def _at(self, time: float, action: Callable[[float], None]) -> None:
        heappush(self._events, (time, self.randomness.getrandbits(62), action))

    def _comes(self, visit: Visit) -> Callable[[float], None]:
        def come(time: float) -> None:
            self._queue.append(visit)
            self._assign(time)

        return come

    def _assign(self, time: float) -> None:
        while self._idle and self._queue:
            worker = self._idle.pop(self.randomness.randrange(len(self._idle)))
            self._admit(time, worker, self._queue.popleft())

    def _frees(self, worker: Worker) -> Callable[[float], None]:
        def free(time: float) -> None:
            self._idle.append(worker)
            self._assign(time)

        return free

    def _admit(self, time: float, worker: Worker, visit: Visit) -> None:
        worker.set(time)
        admission = worker.gate.admit([self.spec], kept=visit.reservations)
        visit.reservations = dict(admission.reservations)
        if admission.go:
            took = self.randomness.uniform(0, self.habits.handler)
            visit.own += took
            self._at(time + took, lambda then: self._enter(then, worker, visit, self.habits.calls))
            return
        assert admission.due is not None
        self._postpone(time, worker, visit, admission.due)

    def _postpone(self, time: float, worker: Worker, visit: Visit, due: datetime) -> None:
        wait = max(0, ceil((due - worker.clock.now()).total_seconds()))
        late = self.randomness.uniform(0, self.habits.jitter)
        if self.randomness.random() < self.habits.late_share:
            delay = self.randomness.uniform(0, self.habits.late)
            visit.own += delay
            late += delay
        visit.trips += 1
        self._at(time + wait + late, self._comes(visit))
        self._at(time + 0.01, self._frees(worker))

    def _enter(self, time: float, worker: Worker, visit: Visit, calls: int) -> None:
        worker.set(time)
        try:
            worker.gate.enter(self.spec, visit.reservations, until=worker.clock.now() + PATIENT)
        except Deferred as deferred:
            self._postpone(time, worker, visit, deferred.until)
            return
        visit.calls.append(worker.time())
        ended = worker.time() + self.randomness.uniform(0, self.habits.call)
        if calls > 1:
            self._at(ended, lambda then: self._enter(then, worker, visit, calls - 1))
            return
        visit.began = worker.time()
        self._at(ended, lambda then: self._report(then, worker))

    def _report(self, time: float, worker: Worker) -> None:
        worker.set(time)
        worker.gate.report(self.spec, self.answer(time))
        self._frees(worker)(time)


def starts(visits: Sequence[Visit]) -> list[float]:
    return sorted(visit.began for visit in visits if visit.began is not None)


def most_in_a_window(times: Sequence[float], window: float = WINDOW) -> int:
    """Returns the largest number of times that any window of so many seconds holds."""
    most, first = 0, 0
    for last, time in enumerate(times):
        while times[first] <= time - window:
            first += 1
        most = max(most, last - first + 1)
    return most


def strict_waits(visits: Sequence[Visit], rate: float) -> list[float]:
    """Returns how long each would wait, first come, first served, at exactly the rate."""
    waits, free = [], float("-inf")
    for visit in sorted(visits, key=lambda one: one.came):
        begins = max(visit.came, free)
        waits.append(begins - visit.came)
        free = begins + 1 / rate
    return waits
