"""The gate before a destination: admits runs, lets calls begin, and records their outcomes."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Final

from webhook_inbox.destinations.circuit import UNKNOWN, CallOutcome, Circuit, Health, Phase
from webhook_inbox.destinations.circuit_breaker import CircuitBreaker
from webhook_inbox.destinations.rate_limiter import (
    LEAD,
    MILLISECOND,
    PATIENCE,
    SECOND,
    TOLERANCE,
    Pace,
    Place,
    RateLimiter,
    microseconds,
    moment,
)
from webhook_inbox.domain.errors import InboxError, Transient, Unavailable
from webhook_inbox.domain.internal_errors import DestinationWait, Postponed, SkippedBecause
from webhook_inbox.domain.manifest import BreakerSpec, DestinationSpec
from webhook_inbox.domain.model import SkipReason
from webhook_inbox.domain.ports import Ports
from webhook_inbox.domain.timestamps import to_ms

# The prefix of `Run.waits_for` of a run that waits for a destination.
WAITS_FOR: Final = "destination "
# How long a run waits before it looks again at a circuit that a person opened.
RECHECK: Final = 60 * SECOND


@dataclass(frozen=True, slots=True)
class DestinationAdmission:
    """The decision on a run before it is leased.

    Attributes:
        go: whether it may begin.
        due: when it returns; None where it may go.
        reservations: its reservations, for `enter`, or for `admit` when it returns.
        destination: the destination that it waits for; "" where it may go.
        why: the reason for the wait, as text; "" where it may go.
        on_limit: "queue", "drop" or "error" where the rate is the reason, else "".
        degraded: the reads and writes that failed, and were skipped.
    """

    go: bool
    due: datetime | None = None
    reservations: Mapping[str, int] = field(default_factory=dict)
    destination: str = ""
    why: str = ""
    on_limit: str = ""
    degraded: tuple[str, ...] = ()


class Gate:
    """Protects destinations. One for each execution environment: it caches reads for a second.

    It fails open: if the table cannot be reached, runs and calls proceed, and
    `DestinationAdmission.degraded` or `degraded` names the failure.
    """

    def __init__(self, ports: Ports) -> None:
        self._clock = ports.clock
        self._breaker = CircuitBreaker(ports)
        self._limiter = RateLimiter(table=ports.table, clock=ports.clock)
        self._degraded: list[str] = []
        self._waits: dict[str, DestinationWait] = {}

    def degraded(self) -> tuple[str, ...]:
        """Returns the failures that `enter` and `report` skipped since the last call."""
        failed, self._degraded = tuple(self._degraded), []
        return failed

    def waits(self) -> Mapping[str, DestinationWait]:
        """Returns the waits since the last call of this method, by destination.

        A destination has one if the last call to it may not be made now, or failed at an open
        circuit.
        """
        waits, self._waits = self._waits, {}
        return waits

    def admit(
        self, specs: Sequence[DestinationSpec], *, kept: Mapping[str, int]
    ) -> DestinationAdmission:
        """Decides, before a run is leased, whether it may begin now. Never raises.

        Args:
            specs: the destinations that it declares.
            kept: its earlier reservations.
        """
        reservations, degraded = dict(kept), list[str]()
        # Destinations that are down go first: a reservation at another one would lapse during
        # the wait. The probe goes last: it blocks all others until its call ends.
        for spec in sorted(specs, key=self._rank):
            try:
                wait = self._admit(spec, reservations)
            except Unavailable as error:
                degraded.append(f"{spec.name}: {error}")
                continue
            if wait is not None:
                return replace(wait, reservations=reservations, degraded=tuple(degraded))
        return DestinationAdmission(go=True, reservations=reservations, degraded=tuple(degraded))

    def enter(
        self, spec: DestinationSpec, reservations: dict[str, int], *, until: datetime
    ) -> None:
        """Waits for the slot of a call, for up to eight seconds.

        Args:
            spec: the destination.
            reservations: the reservations of the run, which are changed.
            until: when it is too late to begin a call.

        Raises:
            Deferred: the destination is down or paused, or no slot is near.
            Skipped: no slot is near, and `on_limit` is "drop".
            Transient: no slot is near, and `on_limit` is "error".
        """
        try:
            self._enter(spec, reservations, until)
        except Unavailable as error:
            self._degraded.append(f"{spec.name}: {error}")

    def report(self, spec: DestinationSpec, answer: CallOutcome) -> DestinationWait | None:
        """Records the outcome of a call. Never raises.

        Returns the wait of the run if the call failed and the circuit is now open, or the call was
        the probe; None if the failure counts as an attempt.
        """
        failed, probing = answer.kind is Health.FAILED, self._breaker.is_probing(spec)
        circuit = UNKNOWN
        try:
            self._breaker.report(spec, answer)
            circuit = self._breaker.look(spec) if failed else circuit
        except Unavailable as error:
            self._degraded.append(f"{spec.name}: {error}")
        if not failed or not (probing or circuit.open_until):
            self._waits.pop(spec.name, None)
            return None
        return self._wait(spec, self._return_at(spec, circuit))

    def _admit(
        self, spec: DestinationSpec, reservations: dict[str, int]
    ) -> DestinationAdmission | None:
        """Returns the wait of a run for this destination, None for none."""
        circuit = self._look(spec, self._breaker.acquire)
        if circuit is None:
            return None
        reservation = reservations.get(spec.name, 0) * MILLISECOND
        if circuit.open_until:
            place = self._defer(spec, circuit, reservation)
        else:
            place = self._limiter.admit(Pace(spec, circuit), reservation)
        _keep(spec, reservations, place.reservation)
        if place.go:
            return None
        why, on_limit = _reason(spec, circuit, place, to_ms(self._clock.now()))
        return DestinationAdmission(
            go=False, due=moment(place.due), destination=spec.name, why=why, on_limit=on_limit
        )

    def _enter(self, spec: DestinationSpec, reservations: dict[str, int], until: datetime) -> None:
        start, latest = 0, min(self._now() + PATIENCE, microseconds(until))
        while (circuit := self._look(spec, self._breaker.begin_probe)) is not None:
            pace, reservation = Pace(spec, circuit), reservations.get(spec.name, 0) * MILLISECOND
            if circuit.open_until:
                place = self._defer(spec, circuit, reservation)
            elif start and start >= max(self._now() - TOLERANCE, pace.resumes_at):
                return  # Nothing has changed during the sleep, and it was not too long.
            else:
                place = self._limiter.begin(pace, reservation, latest=latest)
            if not place.retry_at:
                _keep(spec, reservations, place.reservation)
            if not place.go:
                raise self._refusal(spec, circuit, place, reservations)
            start = place.start
            if start <= self._now():
                return
            self._clock.sleep((start - self._now()) / SECOND)
        # The later calls of a probe need not queue.
        _keep(spec, reservations, self._now())

    def _defer(self, spec: DestinationSpec, circuit: Circuit, reservation: int) -> Place:
        """Returns the reservation of a run that finds the circuit open."""
        # It returns when the circuit may be probed. One that found another run probing returns
        # a second later: nearly all probes are over by then.
        probed = max(circuit.open_until * MILLISECOND, self._now() + SECOND)
        if circuit.held_since:
            probed = self._now() + RECHECK
        first = probed + LEAD
        place = self._limiter.admit(Pace(spec, circuit), reservation, floor=first)
        # A queue delays whole seconds. With a fraction, a run could return a second too late in
        # each recovery, and find that one that probed before has probed again.
        whole = place.reservation + (first - place.reservation) % SECOND
        return replace(place, reservation=whole)

    def _wait(self, spec: DestinationSpec, until: datetime) -> DestinationWait:
        wait = DestinationWait(WAITS_FOR + spec.name, until)
        self._waits[spec.name] = wait
        return wait

    def _return_at(self, spec: DestinationSpec, circuit: Circuit) -> datetime:
        """Returns when a run may call again after its call failed at an open circuit."""
        if circuit.held_since:
            return moment(self._now() + RECHECK)
        recovery = (spec.breaker or BreakerSpec()).recovery
        # Without a row the report was lost, or another run's probe has closed the circuit.
        opens = circuit.open_until * MILLISECOND or self._now() + int(recovery * SECOND)
        # Behind all runs that wait, which return at most a second late: if some requests make the
        # destination fail, all other runs probe before theirs do again.
        return moment(max(opens, self._now()) + self._queue_length(spec, circuit) + SECOND)

    def _queue_length(self, spec: DestinationSpec, circuit: Circuit) -> int:
        try:
            return self._limiter.queue_length(Pace(spec, circuit))
        except Unavailable as error:
            self._degraded.append(f"{spec.name}: {error}")
            return 0

    def _refusal(
        self, spec: DestinationSpec, circuit: Circuit, place: Place, reservations: dict[str, int]
    ) -> InboxError:
        """Returns the error of a call that may not be made now."""
        now = self._clock.now()
        why, on_limit = _reason(spec, circuit, place, to_ms(now))
        due = max(moment(place.due), now)
        if not place.retry_at:
            waits_for = self._wait(spec, due).waits_for
            return Postponed(due, why, waits_for=waits_for, reservations=reservations)
        if on_limit == "drop":
            return SkippedBecause(SkipReason.LIMIT, why)
        return Transient(why, retry_after=due - now, refused=True)

    def _look(
        self, spec: DestinationSpec, probes: Callable[[DestinationSpec], bool]
    ) -> Circuit | None:
        """Returns the circuit, or None if this run is the one that probes it."""
        circuit = self._breaker.look(spec)
        if circuit.phase(to_ms(self._clock.now())) is not Phase.RECOVERING:
            return circuit
        # A failed attempt to probe has read the row again.
        return None if probes(spec) else self._breaker.look(spec)

    def _rank(self, spec: DestinationSpec) -> int:
        try:
            circuit = self._breaker.look(spec)
        except Unavailable:
            return 1
        now = to_ms(self._clock.now())
        barred = circuit.paused_until > now or circuit.phase(now) is Phase.OPEN
        return 0 if barred else 2 if circuit.open_until else 1

    def _now(self) -> int:
        return microseconds(self._clock.now())


def _keep(spec: DestinationSpec, reservations: dict[str, int], reservation: int) -> None:
    """Stores a reservation in a run's, in milliseconds."""
    reservations.pop(spec.name, None)
    if reservation:
        reservations[spec.name] = reservation // MILLISECOND


def _reason(spec: DestinationSpec, circuit: Circuit, place: Place, now: int) -> tuple[str, str]:
    """Returns the reason for a wait as text, and `on_limit` where it is the rate."""
    if circuit.held_since:
        return f"destination {spec.name}: its circuit was opened by hand", ""
    if circuit.open_until:
        return f"destination {spec.name}: its circuit is open", ""
    if not place.retry_at and circuit.paused_until > now:
        return f"destination {spec.name}: paused after a 429", ""
    rate = (
        "the slow start after a 429"
        if spec.rate is None
        else f"its rate of {spelled_rate(spec.rate)}"
    )
    return f"destination {spec.name}: over {rate}", spec.on_limit if place.retry_at else "queue"


def spelled_rate(rate: float) -> str:
    """Returns a rate as inbox.toml has it."""
    for each, seconds in (("s", 1), ("m", 60)):
        if rate * seconds >= 1:
            return f"{round(rate * seconds, 3):g}/{each}"
    return f"{round(rate * 3600, 3):g}/h"
