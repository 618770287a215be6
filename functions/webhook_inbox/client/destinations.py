"""The destinations: their circuits and rates, and the runs that wait for them."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from webhook_inbox.client.errors import Refused, WrongArgument
from webhook_inbox.client.listing import Listing
from webhook_inbox.client.names import unknown
from webhook_inbox.client.scope import Scope
from webhook_inbox.client.times import iso
from webhook_inbox.client.waiting import WaitingRuns, waiting_runs
from webhook_inbox.destinations.circuit import Circuit, Phase, breaker_key, circuit_from, limit_key
from webhook_inbox.destinations.gate import WAITS_FOR, spelled_rate
from webhook_inbox.destinations.manual_circuit import CircuitRequest, close_circuit, open_circuit
from webhook_inbox.destinations.rate_limiter import RESERVATION, moment
from webhook_inbox.domain.audit import Actor
from webhook_inbox.domain.manifest import DestinationSpec
from webhook_inbox.domain.model import Run
from webhook_inbox.domain.ports import Item, Key, Randomness, Table
from webhook_inbox.domain.timestamps import EPOCH, from_ms, to_ms
from webhook_inbox.ledger.schema import RUN_LIFE, live


@dataclass(frozen=True, slots=True)
class ManualOpening:
    """When a person opened a circuit by hand, who, and why."""

    at: datetime
    by: str
    reason: str


@dataclass(frozen=True, slots=True)
class OldestRun:
    """The run that waits for a destination and whose event was received first, to the second.

    It looks at the destination again when it is `due`.
    """

    source: str
    event_id: str
    handler: str
    received_at: datetime
    due: datetime | None


@dataclass(frozen=True, slots=True)
class DestinationStatus:
    """A destination with its circuit and its waiting runs.

    Attributes:
        circuit: the phase of its circuit; None without a breaker, unless it is open by hand.
        failures: the calls that failed since the last success.
        next_probe: when one run may probe; None while the circuit is closed or open by hand.
        paused_until: the end of the pause that the destination asked for, None without one.
        rate: its limit as text, such as "2/s"; None without one.
        queue_until: the time of the last reserved call, None without one in the future.
        waiting_is_complete: False if `waiting` is the least, since there are many open runs.
    """

    destination: str
    base_url: str
    circuit: Phase | None
    opened_by_hand: ManualOpening | None
    failures: int
    next_probe: datetime | None
    paused_until: datetime | None
    rate: str | None
    queue_until: datetime | None
    waiting: int
    waiting_is_complete: bool
    oldest: OldestRun | None


@dataclass(frozen=True, slots=True)
class ChangedCircuit:
    """A circuit that was opened or closed by hand."""

    destination: str
    opened_by_hand: bool


class Destinations:
    """The destinations of an inbox."""

    def __init__(self, scope: Scope) -> None:
        self._scope = scope

    def list(self) -> Listing[DestinationStatus]:
        """Returns the deployed destinations.

        Reads at most 200 open runs per handler and shard of the due index; where there are more,
        the numbers are the least.

        Raises:
            Refused, AccessDenied: the deployed manifest, which names them, cannot be read.
        """
        return Listing(self._scope, self._states())

    def _states(self) -> Iterator[DestinationStatus]:
        # Not the scope's, which is empty where it cannot be read: only it names the destinations.
        specs, now = self._scope.target.manifest.destinations, self._scope.clock.now()
        if not specs:
            return
        keys = [key for name in specs for key in (breaker_key(name), limit_key(name))]
        found = self._scope.table.get_many(keys)
        rows = {Key(row["pk"], row["sk"]): row for row in found if live(row, now) is not None}
        waiting = waiting_runs(self._scope.ledger(), lambda r: r.waits_for.startswith(WAITS_FOR))
        for spec in specs.values():
            yield _state(spec, rows, waiting, now)

    def open(self, destination: str, *, reason: str, by: Actor) -> ChangedCircuit:
        """Opens a circuit within a second: runs wait without an attempt until it is closed.

        Raises:
            WrongArgument: no such destination is deployed.
            Refused: a person opened it already.
        """
        before = open_circuit(*self._request(destination, reason, by))
        if before is not None:
            close = self._scope.program.command("destinations close", argument=destination)
            raise Refused(
                f"the circuit of {destination} is already open by hand since"
                f" {iso(from_ms(before['held_since']))} by {before['held_by']}:"
                f" {before['held_reason']}; close it with `{close}`"
            )
        return ChangedCircuit(destination, opened_by_hand=True)

    def close(self, destination: str, *, reason: str = "", by: Actor) -> ChangedCircuit:
        """Closes a circuit that a person or failures opened; waiting runs return at its rate.

        Raises:
            WrongArgument: no such destination is deployed.
            Refused: it is not open.
        """
        if not close_circuit(*self._request(destination, reason, by)):
            listed = self._scope.program.command("destinations list")
            raise Refused(f"the circuit of {destination} is not open; see `{listed}`")
        return ChangedCircuit(destination, opened_by_hand=False)

    def _request(
        self, destination: str, reason: str, by: Actor
    ) -> tuple[Table, Randomness, CircuitRequest]:
        self._scope.require_write()
        specs = self._scope.target.manifest.destinations
        if destination not in specs:
            raise WrongArgument(unknown("destination", destination, specs))
        request = CircuitRequest(destination, by, reason, self._scope.clock.now())
        return self._scope.table, self._scope.randomness, request


def _state(
    spec: DestinationSpec, rows: Mapping[Key, Item], waiting: WaitingRuns, now: datetime
) -> DestinationStatus:
    row = rows.get(breaker_key(spec.name), {})
    circuit = circuit_from(row)
    runs = [run for run in waiting.runs if run.waits_for == WAITS_FOR + spec.name]
    queue = moment(rows.get(limit_key(spec.name), {}).get(RESERVATION, 0))
    paused = from_ms(circuit.paused_until)
    shown = spec.breaker is not None or circuit.held_since
    return DestinationStatus(
        destination=spec.name,
        base_url=spec.base_url,
        circuit=circuit.phase(to_ms(now)) if shown else None,
        opened_by_hand=_opening(row) if circuit.held_since else None,
        failures=circuit.failures,
        next_probe=_next_probe(circuit, now) if spec.breaker else None,
        paused_until=paused if paused > now else None,
        rate=None if spec.rate is None else spelled_rate(spec.rate),
        queue_until=queue if queue > now else None,
        waiting=len(runs),
        waiting_is_complete=waiting.complete,
        oldest=_oldest(runs),
    )


def _opening(row: Item) -> ManualOpening:
    return ManualOpening(from_ms(row["held_since"]), row["held_by"], row["held_reason"])


def _next_probe(circuit: Circuit, now: datetime) -> datetime | None:
    """Returns when a run may probe; None while the circuit is closed."""
    phase = circuit.phase(to_ms(now))
    if phase is Phase.CLOSED or circuit.held_since:
        return None
    if phase is Phase.OPEN:
        return from_ms(circuit.open_until)
    # The lease of a probe that runs ends at the latest then.
    return max(from_ms(circuit.probe_until), now) if circuit.probe else now


def _oldest(runs: Sequence[Run]) -> OldestRun | None:
    run = min(runs, key=_received_at, default=None)
    if run is None:
        return None
    return OldestRun(run.source, run.event_id, run.handler, _received_at(run), run.next_attempt_at)


def _received_at(run: Run) -> datetime:
    return EPOCH if run.expires_at is None else run.expires_at - RUN_LIFE
