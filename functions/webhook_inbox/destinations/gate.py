"""The gate before a destination: may a run begin, may a call be made, and what came of it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Final, NoReturn

from webhook_inbox.destinations.circuit import CallOutcome, Circuit, Phase
from webhook_inbox.destinations.circuit_breaker import CircuitBreaker
from webhook_inbox.destinations.rate import (
    MILLISECOND,
    SECOND,
    TOLERANCE,
    Pace,
    microseconds,
    moment,
)
from webhook_inbox.destinations.rate_limiter import LEAD, Place, RateLimiter, Turn
from webhook_inbox.destinations.reservations import Timelines
from webhook_inbox.domain.errors import Deferred, Skipped, Transient, Unavailable
from webhook_inbox.domain.manifest import DestinationSpec
from webhook_inbox.domain.ports import Clock, Randomness, Table
from webhook_inbox.domain.timestamps import to_ms

# When a run comes again that found another one probing. Nearly all probes are over by then.
PROBE_PATIENCE: Final = SECOND
# The most that a call waits because its handler took so long to come to it.
LONGEST_PATIENCE: Final = 20 * SECOND


@dataclass(frozen=True, slots=True)
class DestinationAdmission:
    """Whether a run may begin now.

    Attributes:
        go: whether it may.
        due: when it is to come again; None where it may go.
        reservations: what it keeps, to be handed to `enter`, or to `admit` when it comes again.
        destination: the one that it waits for; "" where it may go.
        why: why it waits, for people; "" where it may go.
        on_limit: "queue", "drop" or "error" where the rate is why it may not go, else "".
        degraded: what could not be asked, and let the run pass.
    """

    go: bool
    due: datetime | None = None
    reservations: Mapping[str, int] = field(default_factory=dict)
    destination: str = ""
    why: str = ""
    on_limit: str = ""
    degraded: tuple[str, ...] = ()


class Gate:
    """Spares destinations. One for each execution environment: what it reads it keeps a second.

    A table that cannot be reached stops nobody: the run goes, and what failed is named in
    `Admission.degraded` or by `degraded`.
    """

    def __init__(self, *, table: Table, clock: Clock, randomness: Randomness) -> None:
        self._clock = clock
        self._breaker = CircuitBreaker(table=table, clock=clock, randomness=randomness)
        self._limiter = RateLimiter(timelines=Timelines(table=table, clock=clock), clock=clock)
        self._degraded: list[str] = []

    def degraded(self) -> tuple[str, ...]:
        """Returns what `enter` and `report` could not ask or note since this was asked last."""
        failed, self._degraded = tuple(self._degraded), []
        return failed

    def admit(
        self, specs: Sequence[DestinationSpec], *, kept: Mapping[str, int]
    ) -> DestinationAdmission:
        """Tells, before a run is claimed, whether it may begin now. Never raises.

        Args:
            specs: the destinations that it declares.
            kept: the reservations that it was given earlier.
        """
        reservations, degraded = dict(kept), list[str]()
        # First what costs no reservation: a reservation of one destination is lost while the run waits
        # for another. Last the probe, which nobody else makes meanwhile.
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
        """Lets a call begin, in its turn: it may wait here for two seconds (`Pace.patience`).

        A handler that took long to come here waits as much longer, up to 20 s, since to come
        again would cost as much.

        Args:
            spec: the destination.
            reservations: the reservations of the run, which are changed.
            until: when there is no time left to begin a call.

        Raises:
            Deferred: the destination is down or paused, or its rate is used up for longer.
            Skipped: its rate is used up, and it is declared that runs are dropped then.
            Transient: its rate is used up, and it is declared that runs fail then.
        """
        try:
            self._enter(spec, reservations, until)
        except Unavailable as error:
            self._degraded.append(f"{spec.name}: {error}")

    def report(self, spec: DestinationSpec, answer: CallOutcome) -> None:
        """Notes how a call ended. Never raises."""
        try:
            self._breaker.report(spec, answer)
        except Unavailable as error:
            self._degraded.append(f"{spec.name}: {error}")

    def _admit(
        self, spec: DestinationSpec, reservations: dict[str, int]
    ) -> DestinationAdmission | None:
        """Returns why the run has to wait for this destination, and until when, or None."""
        circuit = self._look(spec, self._breaker.acquire)
        if circuit is None:
            return None
        turn = Turn.of(spec.name, reservations)
        if circuit.open_until:
            place = self._bar(spec, circuit, turn)
        else:
            place = self._limiter.admit(Pace(spec, circuit), turn)
        place.turn.keep(spec.name, reservations)
        if place.go:
            return None
        why, on_limit = _reason(spec, circuit, place, to_ms(self._clock.now()))
        return DestinationAdmission(
            go=False, due=moment(place.due), destination=spec.name, why=why, on_limit=on_limit
        )

    def _enter(self, spec: DestinationSpec, reservations: dict[str, int], until: datetime) -> None:
        turn, start = Turn.of(spec.name, reservations), 0
        came, took = self._now(), _took(turn, self._now())
        while (circuit := self._look(spec, self._breaker.begin_probe)) is not None:
            if circuit.open_until:
                self._put_off(spec, circuit, self._bar(spec, circuit, turn), reservations)
            pace = Pace(spec, circuit)
            # Whoever has slept looks again, and begins if nothing has changed. Asleep for too
            # long it has missed its reservation.
            if start and start >= max(self._now() - TOLERANCE, pace.resumes_at):
                return
            patience = took + pace.patience(came, again=turn.again)
            latest = min(came + patience, microseconds(until))
            place = self._limiter.begin(pace, turn, latest=latest)
            if not place.go:
                self._put_off(spec, circuit, place, reservations)
            place.turn.keep(spec.name, reservations)
            start, turn = place.start, place.turn
            wait = start - self._now()
            if wait <= 0:
                return
            self._clock.sleep(wait / SECOND)
        # Who probes need not queue for its next call.
        replace(turn, at=self._now()).keep(spec.name, reservations)

    def _bar(self, spec: DestinationSpec, circuit: Circuit, turn: Turn) -> Place:
        """Returns when a run is to come that finds the circuit open."""
        # It comes LEAD before its turn: when the circuit may be probed, and no earlier.
        probed = max(circuit.open_until * MILLISECOND, self._now() + PROBE_PATIENCE)
        return self._limiter.admit(Pace(spec, circuit), turn, floor=probed + LEAD)

    def _put_off(
        self, spec: DestinationSpec, circuit: Circuit, place: Place, reservations: dict[str, int]
    ) -> NoReturn:
        """Raises what a call raises that may not be made now."""
        now = self._clock.now()
        why, on_limit = _reason(spec, circuit, place, to_ms(now))
        due = max(moment(place.due), now)
        if not place.retry_at:
            place.turn.keep(spec.name, reservations)
            waits_for = f"destination {spec.name}"
            raise Deferred(due, why, waits_for=waits_for, reservations=reservations)
        if on_limit == "drop":
            raise Skipped(why)
        raise Transient(why, retry_after=due - now, refused=True)

    def _look(
        self, spec: DestinationSpec, probes: Callable[[DestinationSpec], bool]
    ) -> Circuit | None:
        """Returns the circuit, or None if this run is the one that probes it."""
        circuit = self._breaker.look(spec)
        if circuit.phase(to_ms(self._clock.now())) is not Phase.RECOVERING:
            return circuit
        # Whoever was refused has seen who probes, or that it is over.
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


def _took(turn: Turn, now: int) -> int:
    """Returns how long a handler took from its admission to its call."""
    return min(max(now - turn.at, 0), LONGEST_PATIENCE) if turn.at else 0


def _reason(spec: DestinationSpec, circuit: Circuit, place: Place, now: int) -> tuple[str, str]:
    """Returns why a run waits, for people, and what it does where the rate is why."""
    if circuit.open_until:
        return f"destination {spec.name}: its circuit is open", ""
    if not place.retry_at and circuit.paused_until > now:
        return f"destination {spec.name}: paused after a 429", ""
    rate = (
        "the slow start after a 429" if spec.rate is None else f"its rate of {_spelled(spec.rate)}"
    )
    return f"destination {spec.name}: over {rate}", spec.on_limit if place.retry_at else "queue"


def _spelled(rate: float) -> str:
    """Returns a rate as inbox.toml has it."""
    for each, seconds in (("s", 1), ("m", 60)):
        if rate * seconds >= 1:
            return f"{round(rate * seconds, 3):g}/{each}"
    return f"{round(rate * 3600, 3):g}/h"
