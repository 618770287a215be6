"""Circuit breaker: counts failures across all workers, opens once, and admits one probe.

A healthy destination costs no write: a failure is one ADD, and a success writes only if the
cached row has failures. Reads are cached for one second.
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
from webhook_inbox.domain.ports import Change, Ports
from webhook_inbox.domain.timestamps import MILLISECOND, to_ms
from webhook_inbox.ledger.schema import carries, live

# How long a read is cached, and so how long a worker may miss that a circuit opened.
BELIEVED: Final = timedelta(seconds=1)
# The lease of a probe lasts the timeout of a call and this margin, from admission to response.
# When it expires, the worker counts as dead.
PROBE_MARGIN: Final = timedelta(seconds=20)
# The pause after a 429 without `Retry-After`, and the bounds of a pause.
DEFAULT_PAUSE: Final = timedelta(seconds=10)
SHORTEST_PAUSE: Final = timedelta(seconds=1)
LONGEST_PAUSE: Final = timedelta(hours=1)

_CLOSED: Final = Absent("open_until")


@dataclass(frozen=True, slots=True)
class Probe:
    """The lease for the one call that decides a recovery; `until` in epoch milliseconds."""

    id: str
    until: int
    called: bool = False


class CircuitBreaker:
    """The circuits of all destinations, as one execution environment knows them."""

    def __init__(self, ports: Ports) -> None:
        self._table = ports.table
        self._clock = ports.clock
        self._randomness = ports.randomness
        self._seen: dict[str, tuple[Circuit, int]] = {}  # and when it was read
        self._probes: dict[str, Probe] = {}

    def look(self, spec: DestinationSpec) -> Circuit:
        """Returns the circuit of a destination as it was at most one second ago.

        Without a breaker only a person opens it. A pause applies to every destination.

        Raises:
            Unavailable: the table failed.
        """
        now = self._clock.now()
        seen = self._seen.get(spec.name)
        # If the clock was set back, the age of the cached read is negative.
        if seen is None or not 0 <= to_ms(now) - seen[1] < BELIEVED // MILLISECOND:
            self._remember(spec, live(self._table.get(breaker_key(spec.name)), now))
        circuit, _ = self._seen[spec.name]
        opens = spec.breaker or circuit.held_since
        return circuit if opens else replace(circuit, open_until=0)

    def acquire(self, spec: DestinationSpec) -> bool:
        """Leases the probe of a recovering circuit; True for one run only.

        Raises:
            Unavailable: the table failed.
        """
        circuit, now = self.look(spec), to_ms(self._clock.now())
        taken = circuit.probe and now <= circuit.probe_until
        if taken or circuit.phase(now) is not Phase.RECOVERING:
            return False
        probe = Probe(self._randomness.token(), now + _probe_time(spec) // MILLISECOND)
        # The condition includes `open_until`: another probe may have failed since the read.
        free = either(Absent("probe"), Less("probe_until", now))
        lease = {"probe": probe.id, "probe_until": probe.until}
        if not self._write(
            spec, Change(set=lease), when=every(Equals("open_until", circuit.open_until), free)
        ):
            return False
        self._probes[spec.name] = probe
        return True

    def begin_probe(self, spec: DestinationSpec) -> bool:
        """Returns whether the next call is the probe; leases the probe if necessary.

        Raises:
            Unavailable: the table failed.
        """
        if not self._holds(spec) and not self.acquire(spec):
            return False
        self._probes[spec.name] = replace(self._probes[spec.name], called=True)
        return True

    def is_probing(self, spec: DestinationSpec) -> bool:
        """Returns whether the call whose outcome is reported next is the probe."""
        probe = self._probes.get(spec.name)
        return probe is not None and probe.called

    def report(self, spec: DestinationSpec, answer: CallOutcome) -> None:
        """Records the outcome of a call; raises Unavailable if the table failed."""
        if answer.kind is Health.LIMITED or answer.retry_after is not None:
            self._pause(spec, answer.retry_after)
        if spec.breaker is None:
            return
        probe = self._probes.get(spec.name)
        if probe is not None and probe.called:
            del self._probes[spec.name]
            self._conclude(spec, spec.breaker, probe, answer)
        elif answer.kind is Health.FAILED:
            self._count(spec, spec.breaker, answer)
        elif answer.kind is Health.OK:
            self._forgive(spec)

    def _conclude(
        self, spec: DestinationSpec, breaker: BreakerSpec, probe: Probe, answer: CallOutcome
    ) -> None:
        if answer.kind is Health.FAILED:
            opening = self._opening(breaker, answer)
            change = Change(set=opening, remove=("probe", "probe_until"))
        else:
            # A destination that answers 429 is up. Until a second success, one failure opens the
            # circuit again: many destinations answer once and fail under the next calls.
            unproven = {"failures": breaker.failures - 1}
            change = Change(set=unproven, remove=("open_until", "probe", "probe_until"))
        # If the lease was taken over, the probe of the other run decides.
        self._write(spec, change, when=Equals("probe", probe.id))

    def _count(self, spec: DestinationSpec, breaker: BreakerSpec, answer: CallOutcome) -> None:
        # Calls in flight when the circuit opened fail as well, and must not change the row.
        counted = self._write(spec, Change(add={"failures": 1}), when=_CLOSED)
        if counted and self._seen[spec.name][0].failures >= breaker.failures:
            self._write(spec, Change(set=self._opening(breaker, answer)), when=_CLOSED)

    def _forgive(self, spec: DestinationSpec) -> None:
        seen = self._seen.get(spec.name)
        if seen is not None and seen[0].failures:
            self._write(spec, Change(set={"failures": 0}), when=_CLOSED)

    def _pause(self, spec: DestinationSpec, retry_after: timedelta | None) -> None:
        asked = DEFAULT_PAUSE if retry_after is None else retry_after
        until = to_ms(self._clock.now() + _bounded(asked))
        longer = either(Absent("paused_until"), Less("paused_until", until))
        # The write sets the expiry of the row, which is later for a circuit that a person opened.
        when = every(longer, Absent("held_since"))
        self._write(spec, Change(set={"paused_until": until}), when=when)

    def _opening(self, breaker: BreakerSpec, answer: CallOutcome) -> dict[str, Any]:
        recovery = timedelta(seconds=breaker.recovery)
        if answer.retry_after is not None:
            recovery = max(recovery, _bounded(answer.retry_after))
        return {"open_until": to_ms(self._clock.now() + recovery)}

    def _holds(self, spec: DestinationSpec) -> bool:
        probe, now = self._probes.get(spec.name), to_ms(self._clock.now())
        if probe is None or probe.called or now > probe.until:
            return False
        return self.look(spec).probe == probe.id

    def _write(self, spec: DestinationSpec, change: Change, *, when: Condition) -> bool:
        """Writes the row and caches the result; False if the condition failed."""
        extended = replace(change, set={**change.set, **expiry(self._clock.now())})
        try:
            self._remember(spec, self._table.update(breaker_key(spec.name), extended, when=when))
        except ConditionFailed as error:
            self._remember(spec, error.old)
            # An earlier attempt of this write may have succeeded, with its response lost.
            return carries(error.old, change.set) and bool(change.set)
        return True

    def _remember(self, spec: DestinationSpec, row: Mapping[str, Any] | None) -> None:
        self._seen[spec.name] = circuit_from(row), to_ms(self._clock.now())


def _bounded(pause: timedelta) -> timedelta:
    return min(max(pause, SHORTEST_PAUSE), LONGEST_PAUSE)


def _probe_time(spec: DestinationSpec) -> timedelta:
    return timedelta(seconds=spec.timeout) + PROBE_MARGIN
