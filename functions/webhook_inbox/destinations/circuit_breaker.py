"""Circuit breaker: counts failures over all workers, opens once, lets one run probe.

A healthy destination costs no write: a failure is one ADD, and a success writes only if
failures were seen. What is read is kept for a second.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any, Final

from webhook_inbox.destinations.circuit import (
    CallOutcome,
    Circuit,
    Health,
    Phase,
    breaker_key,
    circuit_from,
    expiry,
)
from webhook_inbox.domain.conditions import Absent, Condition, Equals, Less, either, every
from webhook_inbox.domain.errors import ConditionFailed
from webhook_inbox.domain.manifest import BreakerSpec, DestinationSpec
from webhook_inbox.domain.ports import Change, Clock, Randomness, Table
from webhook_inbox.domain.timestamps import MILLISECOND, to_ms
from webhook_inbox.ledger.schema import carries, live

# How long what was read is believed, and so how long a worker may miss that a circuit opened.
BELIEVED: Final = timedelta(seconds=1)
# How much longer than one call a probe has: from its admission to its answer. A worker that
# died is given up after it.
PROBE_MARGIN: Final = timedelta(seconds=20)
# A 429 that names no time, one in the past, and the longest that is obeyed.
DEFAULT_PAUSE: Final = timedelta(seconds=10)
SHORTEST_PAUSE: Final = timedelta(seconds=1)
LONGEST_PAUSE: Final = timedelta(hours=1)

_CLOSED: Final = Absent("open_until")


@dataclass(frozen=True, slots=True)
class Probe:
    """The right to make the one call by which a circuit recovers; `until` in epoch ms."""

    id: str
    until: int
    called: bool = False


@dataclass(frozen=True, slots=True)
class _Seen:
    circuit: Circuit
    at: int


class CircuitBreaker:
    """The circuits of all destinations, as one execution environment knows them."""

    def __init__(self, *, table: Table, clock: Clock, randomness: Randomness) -> None:
        self._table = table
        self._clock = clock
        self._randomness = randomness
        self._seen: dict[str, _Seen] = {}
        self._probes: dict[str, Probe] = {}

    def look(self, spec: DestinationSpec) -> Circuit:
        """Returns the destination's circuit as it was at most a second ago.

        Without a breaker it is never open; a pause holds for every destination.

        Raises:
            Unavailable: the table failed.
        """
        now = self._clock.now()
        seen = self._seen.get(spec.name)
        # A clock that was set back makes what was read look younger than new.
        if seen is None or not 0 <= to_ms(now) - seen.at < BELIEVED // MILLISECOND:
            self._remember(spec, live(self._table.get(breaker_key(spec.name)), now))
            seen = self._seen[spec.name]
        return seen.circuit if spec.breaker else replace(seen.circuit, open_until=0)

    def acquire(self, spec: DestinationSpec) -> bool:
        """Tries to become the probe of a recovering circuit; True for one run only.

        Raises:
            Unavailable: the table failed.
        """
        circuit, now = self.look(spec), to_ms(self._clock.now())
        taken = circuit.probe and now <= circuit.probe_until
        if taken or circuit.phase(now) is not Phase.RECOVERING:
            return False
        probe = Probe(self._randomness.token(), now + _probe_time(spec) // MILLISECOND)
        # By the time of opening, too: another probe may have failed since this was read.
        free = either(Absent("probe"), Less("probe_until", now))
        lease = {"probe": probe.id, "probe_until": probe.until}
        if not self._write(
            spec, Change(set=lease), when=every(Equals("open_until", circuit.open_until), free)
        ):
            return False
        self._probes[spec.name] = probe
        return True

    def begin_probe(self, spec: DestinationSpec) -> bool:
        """Tells whether the next call is the probe's, which one is acquired for if need be.

        Raises:
            Unavailable: the table failed.
        """
        if not self._holds(spec) and not self.acquire(spec):
            return False
        self._probes[spec.name] = replace(self._probes[spec.name], called=True)
        return True

    def report(self, spec: DestinationSpec, answer: CallOutcome) -> None:
        """Notes how a call ended.

        Raises:
            Unavailable: the table failed.
        """
        if answer.kind is Health.LIMITED:
            self._pause(spec, answer.retry_after)
        if spec.breaker is None:
            return
        probe = self._probes.get(spec.name)
        if probe is not None and probe.called:
            del self._probes[spec.name]
            self._conclude(spec, spec.breaker, probe, answer)
        elif answer.kind is Health.FAILED:
            self._count(spec, spec.breaker)
        elif answer.kind is Health.OK:
            self._forgive(spec)

    def _conclude(
        self, spec: DestinationSpec, breaker: BreakerSpec, probe: Probe, answer: CallOutcome
    ) -> None:
        if answer.kind is Health.FAILED:
            change = Change(set=self._opening(breaker), remove=("probe", "probe_until"))
        else:
            # One that is called too often is there, at least.
            change = Change(set={"failures": 0}, remove=("open_until", "probe", "probe_until"))
        # Unless the lease was taken over: then another run's probe decides.
        self._write(spec, change, when=Equals("probe", probe.id))

    def _count(self, spec: DestinationSpec, breaker: BreakerSpec) -> None:
        # Calls that were under way when it opened fail as well, and change nothing any more.
        counted = self._write(spec, Change(add={"failures": 1}), when=_CLOSED)
        if counted and self._seen[spec.name].circuit.failures >= breaker.failures:
            self._write(spec, Change(set=self._opening(breaker)), when=_CLOSED)

    def _forgive(self, spec: DestinationSpec) -> None:
        seen = self._seen.get(spec.name)
        if seen is not None and seen.circuit.failures:
            self._write(spec, Change(set={"failures": 0}), when=_CLOSED)

    def _pause(self, spec: DestinationSpec, retry_after: timedelta | None) -> None:
        asked = DEFAULT_PAUSE if retry_after is None else retry_after
        pause = min(max(asked, SHORTEST_PAUSE), LONGEST_PAUSE)
        until = to_ms(self._clock.now() + pause)
        longer = either(Absent("paused_until"), Less("paused_until", until))
        self._write(spec, Change(set={"paused_until": until}), when=longer)

    def _opening(self, breaker: BreakerSpec) -> dict[str, Any]:
        return {"open_until": to_ms(self._clock.now() + timedelta(seconds=breaker.recovery))}

    def _holds(self, spec: DestinationSpec) -> bool:
        probe, now = self._probes.get(spec.name), to_ms(self._clock.now())
        if probe is None or probe.called or now > probe.until:
            return False
        return self.look(spec).probe == probe.id

    def _write(self, spec: DestinationSpec, change: Change, *, when: Condition) -> bool:
        """Writes the row and remembers it as it is then; False if the condition failed."""
        kept = replace(change, set={**change.set, **expiry(self._clock.now())})
        try:
            self._remember(spec, self._table.update(breaker_key(spec.name), kept, when=when))
        except ConditionFailed as error:
            self._remember(spec, error.old)
            # An earlier try of this call succeeded, and its answer was lost.
            return carries(error.old, change.set) and bool(change.set)
        return True

    def _remember(self, spec: DestinationSpec, row: Mapping[str, Any] | None) -> None:
        self._seen[spec.name] = _Seen(circuit_from(row), to_ms(self._clock.now()))


def _probe_time(spec: DestinationSpec) -> timedelta:
    return timedelta(seconds=spec.timeout) + PROBE_MARGIN
