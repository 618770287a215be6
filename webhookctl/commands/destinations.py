"""`destinations`: shows the circuits, the rates and the waiting runs of the destinations."""

from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from typing import Any, Final

from webhook_inbox.destinations.circuit import (
    Circuit,
    Phase,
    breaker_key,
    circuit_from,
    limit_key,
)
from webhook_inbox.destinations.gate import WAITS_FOR, spelled_rate
from webhook_inbox.destinations.rate_limiter import RESERVATION, moment
from webhook_inbox.domain.manifest import DestinationSpec
from webhook_inbox.domain.model import Run
from webhook_inbox.domain.ports import Item, Key
from webhook_inbox.domain.timestamps import EPOCH, from_ms, to_ms
from webhook_inbox.ledger.queries import Ledger
from webhook_inbox.ledger.schema import RUN_LIFE, live
from webhookctl.command_tree import CommandTree
from webhookctl.display.output import counted
from webhookctl.display.table import Column, Fit
from webhookctl.display.times import iso, relative, span
from webhookctl.invocation import Invocation, takes_options

COLUMNS: Final = (
    Column("DESTINATION", Fit.NAME),
    Column("CIRCUIT", Fit.NAME),
    Column("RATE"),
    Column("WAITING"),
    Column("OLDEST"),
    Column("NEXT_PROBE"),
)
# The open runs that are read per partition of the due index; a handler has eight.
PER_SHARD: Final = 200
WORKERS: Final = 8

app: Final = CommandTree(help="Show what protects the destinations.")


@app.callback()
def destinations() -> None:
    """Show what protects the destinations."""


@dataclass(frozen=True, slots=True)
class WaitingRuns:
    """The runs that wait for destinations; not complete if only some of the due index was read."""

    runs: tuple[Run, ...]
    complete: bool


@app.command("list")
@takes_options
def list_destinations(call: Invocation) -> None:
    """List the destinations with circuit, rate, waiting runs, oldest run and next probe.

    Reads at most 200 open runs per handler and shard of the due index. Where there are more, the
    number of waiting runs is "at least".
    """
    target, now = call.target, call.clock.now()
    # Not `known_manifest`: only the manifest names the destinations.
    specs = target.manifest.destinations
    rows = _rows(call, specs)
    waiting = _waiting(target.ledger()) if specs else WaitingRuns((), complete=True)
    found = [destination_object(spec, rows, waiting, now) for spec in specs.values()]
    if call.as_json:
        for each in found:
            call.output.json(each)
        return
    if not found:
        call.output.note("The deployed inbox has no destinations.")
        return
    call.output.table(COLUMNS, [_row(each, now) for each in found])
    inspect = call.program.command("inbox inspect", argument="EVENT_ID")
    call.output.note(f"Inspect the oldest run with `{inspect}`; --json has its ids.")


def _rows(call: Invocation, names: Iterable[str]) -> dict[Key, Item]:
    """Returns the rows of circuits and rate limits, by key."""
    keys = [key for name in names for key in (breaker_key(name), limit_key(name))]
    found = call.target.table.get_many(keys) if keys else []
    now = call.clock.now()
    return {Key(row["pk"], row["sk"]): row for row in found if live(row, now) is not None}


def _waiting(ledger: Ledger) -> WaitingRuns:
    """Returns the runs that wait for any destination, as far as the limit allows."""

    def read(bucket: str) -> list[Run]:
        return list(islice(ledger.due_runs(bucket=bucket), PER_SHARD + 1))

    with ThreadPoolExecutor(WORKERS) as pool:
        shards = list(pool.map(read, ledger.due_buckets()))
    waits = (run for runs in shards for run in runs if run.waits_for.startswith(WAITS_FOR))
    return WaitingRuns(tuple(waits), all(len(runs) <= PER_SHARD for runs in shards))


def destination_object(
    spec: DestinationSpec, rows: Mapping[Key, Item], waiting: WaitingRuns, now: datetime
) -> dict[str, Any]:
    """Returns a destination as JSON data."""
    circuit = circuit_from(rows.get(breaker_key(spec.name)))
    runs = [run for run in waiting.runs if run.waits_for == WAITS_FOR + spec.name]
    oldest = min(runs, key=_received_at, default=None)
    queue = moment(rows.get(limit_key(spec.name), {}).get(RESERVATION, 0))
    paused = from_ms(circuit.paused_until)
    return {
        "destination": spec.name,
        "base_url": spec.base_url,
        "circuit": str(circuit.phase(to_ms(now))) if spec.breaker else None,
        "failures": circuit.failures,
        "next_probe": iso(_next_probe(circuit, now) if spec.breaker else None),
        "paused_until": iso(paused if paused > now else None),
        "rate": None if spec.rate is None else spelled_rate(spec.rate),
        "queue_until": iso(queue if queue > now else None),
        "waiting": len(runs),
        "waiting_is_complete": waiting.complete,
        "oldest": None if oldest is None else _run_object(oldest),
    }


def _next_probe(circuit: Circuit, now: datetime) -> datetime | None:
    """Returns when a run may probe; None while the circuit is closed."""
    phase = circuit.phase(to_ms(now))
    if phase is Phase.CLOSED:
        return None
    if phase is Phase.OPEN:
        return from_ms(circuit.open_until)
    # The lease of a probe that runs ends at the latest then.
    return max(from_ms(circuit.probe_until), now) if circuit.probe else now


def _run_object(run: Run) -> dict[str, Any]:
    named = {"source": run.source, "event_id": run.event_id, "handler": run.handler}
    return {**named, "received_at": iso(_received_at(run)), "due": iso(run.next_attempt_at)}


def _received_at(run: Run) -> datetime:
    """Returns when a run's event was received, to the second."""
    return EPOCH if run.expires_at is None else run.expires_at - RUN_LIFE


def _row(found: Mapping[str, Any], now: datetime) -> tuple[object, ...]:
    circuit, paused = found["circuit"] or "none", found["paused_until"]
    if found["failures"]:
        circuit += f", {counted(found['failures'], 'failure')}"
    if paused:
        circuit += f", paused for {span(datetime.fromisoformat(paused) - now)}"
    least = "" if found["waiting_is_complete"] else "at least "
    oldest = found["oldest"]
    age = "-" if oldest is None else relative(datetime.fromisoformat(oldest["received_at"]), now)
    probe = "-" if found["next_probe"] is None else _ahead(found["next_probe"], now)
    named = (found["destination"], circuit, found["rate"] or "-")
    return (*named, f"{least}{found['waiting']}", age, probe)


def _ahead(time: str, now: datetime) -> str:
    at = datetime.fromisoformat(time)
    return relative(at, now) if at > now else "now"
