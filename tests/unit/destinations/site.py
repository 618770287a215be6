"""One destination, its table, and as many workers as a test asks for."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any

from tests.unit.support.world import World
from webhook_inbox.adapters.memory.system import ManualClock, SeededRandomness
from webhook_inbox.destinations.circuit import UNKNOWN, CallOutcome, breaker_key, limit_key
from webhook_inbox.destinations.gate import DestinationAdmission, Gate
from webhook_inbox.destinations.rate_limiter import Pace
from webhook_inbox.domain.errors import Deferred
from webhook_inbox.domain.manifest import BreakerSpec, DestinationSpec
from webhook_inbox.domain.ports import Item
from webhook_inbox.domain.timestamps import to_ms

CRM = DestinationSpec("crm", "https://crm.example")
LIMITED = replace(CRM, rate=10.0)
BREAKER = BreakerSpec(failures=3, recovery=60.0, drain=5.0)
FRAGILE = replace(CRM, breaker=BREAKER)


class SleepyClock(ManualClock):
    """Notes how long it was told to sleep."""

    def __init__(self) -> None:
        super().__init__()
        self.slept: list[float] = []

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        super().sleep(seconds)


class Site:
    def __init__(self, spec: DestinationSpec = CRM) -> None:
        self.spec = spec
        world = World()
        self._ports, self.plan, self.table = world.ports, world.plan, world.table
        self.clock = SleepyClock()
        self._workers = 0
        self.gate = self.worker()

    def worker(self, *, skew: float = 0.0) -> Gate:
        """Returns the gate of another execution environment."""
        self._workers += 1
        clock = SkewedClock(self.clock, skew) if skew else self.clock
        return Gate(replace(self._ports, clock=clock, randomness=SeededRandomness(self._workers)))

    def admit(
        self, kept: Mapping[str, int] | None = None, *, gate: Gate | None = None
    ) -> DestinationAdmission:
        return (gate or self.gate).admit([self.spec], kept=kept or {})

    def enter(
        self,
        reservations: dict[str, int] | None = None,
        *,
        gate: Gate | None = None,
        seconds: float = 45,
    ) -> dict[str, int]:
        """Makes a call, which may be put off, and returns the run's reservations."""
        reservations = {} if reservations is None else reservations
        until = self.clock.now() + timedelta(seconds=seconds)
        (gate or self.gate).enter(self.spec, reservations, until=until)
        return reservations

    def put_off(
        self,
        reservations: dict[str, int] | None = None,
        *,
        gate: Gate | None = None,
        seconds: float = 45,
    ) -> float:
        """Expects that a call is put off, and returns for how many seconds."""
        try:
            self.enter(reservations, gate=gate, seconds=seconds)
        except Deferred as deferred:
            return (deferred.until - self.clock.now()).total_seconds()
        raise AssertionError("the call was let through")

    def call(self, answer: CallOutcome, *, gate: Gate | None = None) -> None:
        """Makes a call of a run that was admitted, whose answer is this."""
        admission = self.admit(gate=gate)
        assert admission.go, admission.why
        self.enter(dict(admission.reservations), gate=gate)
        (gate or self.gate).report(self.spec, answer)

    def fail(self, times: int, *, gate: Gate | None = None) -> None:
        for _ in range(times):
            self.call(CallOutcome.failed(), gate=gate)

    def open(self) -> None:
        """Lets the circuit open, as of now."""
        breaker = self.spec.breaker
        assert breaker is not None
        self.fail(breaker.failures)

    def admitted(self) -> dict[str, int]:
        """Returns the reservations of a run that was let through just now."""
        return {self.spec.name: to_ms(self.clock.now())}

    def take(self, starts: int) -> None:
        """Lets as many calls take their time to begin, at once."""
        pace, kept = Pace(self.spec, UNKNOWN), to_ms(self.clock.now()) * 1000
        for _ in range(starts):
            assert self.gate._limiter.begin(pace, kept, latest=1 << 62).go

    def wait(self, admission: DestinationAdmission) -> float:
        """Returns for how many seconds a run is put off."""
        assert not admission.go
        assert admission.due is not None
        return (admission.due - self.clock.now()).total_seconds()

    def breaker_row(self) -> Item:
        return self.table.get(breaker_key(self.spec.name)) or {}

    def limit_row(self) -> Item:
        return self.table.get(limit_key(self.spec.name)) or {}

    def seconds(self, at: int) -> float:
        """Returns how far ahead a reservation is, which is kept in milliseconds."""
        return (at - to_ms(self.clock.now())) / 1000


class SkewedClock:
    """Another worker's clock: as much ahead of the first, or behind."""

    def __init__(self, clock: ManualClock, skew: float) -> None:
        self._clock = clock
        self.skew = timedelta(seconds=skew)

    def now(self) -> Any:
        return self._clock.now() + self.skew

    def sleep(self, seconds: float) -> None:
        assert seconds >= 0
        self._clock.sleep(seconds)
