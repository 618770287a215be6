"""`destinations`: lists the destinations, and opens and closes their circuits by hand."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Annotated, Any, Final

import typer

from webhook_inbox.adapters.system import SystemRandomness
from webhook_inbox.client.errors import WrongArgument
from webhook_inbox.client.names import unknown
from webhook_inbox.client.times import iso, relative, span
from webhook_inbox.client.waiting import WaitingRuns, waiting_runs
from webhook_inbox.destinations.circuit import Circuit, Phase, breaker_key, circuit_from, limit_key
from webhook_inbox.destinations.gate import WAITS_FOR, spelled_rate
from webhook_inbox.destinations.manual_circuit import CircuitRequest, close_circuit, open_circuit
from webhook_inbox.destinations.rate_limiter import RESERVATION, moment
from webhook_inbox.domain.manifest import DestinationSpec
from webhook_inbox.domain.model import Run
from webhook_inbox.domain.ports import Item, Key
from webhook_inbox.domain.timestamps import EPOCH, from_ms, to_ms
from webhook_inbox.ledger.schema import RUN_LIFE, live
from webhookctl.command_tree import CommandTree
from webhookctl.display.output import counted
from webhookctl.display.table import Column, Fit
from webhookctl.errors import CommandError
from webhookctl.invocation import By, Invocation, Why, takes_options

COLUMNS: Final = (
    Column("DESTINATION", Fit.NAME),
    Column("CIRCUIT", Fit.NAME),
    Column("RATE"),
    Column("WAITING"),
    Column("OLDEST"),
    Column("NEXT_PROBE"),
)

app: Final = CommandTree(help="List the destinations; open and close their circuits.")


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
    waiting = WaitingRuns((), complete=True)
    if specs:
        waiting = waiting_runs(target.ledger(), lambda run: run.waits_for.startswith(WAITS_FOR))
    found = [destination_object(spec, rows, waiting, now) for spec in specs.values()]
    if call.as_json:
        for each in found:
            call.output.json(each)
        return
    if not found:
        call.output.note("The deployed inbox has no destinations.")
        return
    call.output.table(COLUMNS, [_row(each, now) for each in found])
    for each in found:
        if (oldest := each["oldest"]) is not None:
            options = ("--source", oldest["source"])
            inspect = call.program.command("inbox inspect", *options, argument=oldest["event_id"])
            call.output.note(f"The oldest run that waits for {each['destination']}: `{inspect}`.")


Name = Annotated[str, typer.Argument(metavar="NAME", help="The destination, as listed.")]


@app.command("open")
@takes_options
def open_destination(
    call: Invocation,
    *,
    name: Name,
    reason: Annotated[str, typer.Option(help="Shown with the destination and in the audit.")],
    by: By = None,
) -> None:
    """Open a circuit by hand: runs wait without an attempt until it is closed by hand.

    Takes effect within a second; calls in progress finish.
    """
    wish = _wish(call, name, reason, by)
    before = open_circuit(call.target.table, SystemRandomness(), wish)
    close = call.program.command("destinations close", argument=name)
    if before is not None:
        raise CommandError(
            f"the circuit of {name} is already open by hand since"
            f" {iso(from_ms(before['held_since']))} by {before['held_by']}:"
            f" {before['held_reason']}; close it with `{close}`"
        )
    _done(call, name, opened=True)
    call.output.note(f"Takes effect within a second. Close it with `{close}`.")


@app.command("close")
@takes_options
def close_destination(call: Invocation, *, name: Name, reason: Why = "", by: By = None) -> None:
    """Close a circuit that a person or failures opened; waiting runs return at the drain rate."""
    wish = _wish(call, name, reason, by)
    if not close_circuit(call.target.table, SystemRandomness(), wish):
        listed = call.program.command("destinations list")
        raise CommandError(f"the circuit of {name} is not open; see `{listed}`")
    _done(call, name, opened=False)
    call.output.note("Waiting runs return within minutes, at the drain rate of the destination.")


def _wish(call: Invocation, name: str, reason: str, by: str | None) -> CircuitRequest:
    """Returns the request; raises WrongArgument for an unknown destination."""
    specs = call.target.manifest.destinations
    if name not in specs:
        raise WrongArgument(unknown("destination", name, specs))
    return CircuitRequest(name, call.actor(by), reason, call.clock.now())


def _done(call: Invocation, name: str, *, opened: bool) -> None:
    if call.as_json:
        call.output.json({"destination": name, "opened_by_hand": opened})
    else:
        call.output.line(f"The circuit of {name} is {'open by hand' if opened else 'closed'}.")


def _rows(call: Invocation, names: Iterable[str]) -> dict[Key, Item]:
    """Returns the rows of circuits and rate limits, by key."""
    keys = [key for name in names for key in (breaker_key(name), limit_key(name))]
    found = call.target.table.get_many(keys) if keys else []
    now = call.clock.now()
    return {Key(row["pk"], row["sk"]): row for row in found if live(row, now) is not None}


def destination_object(
    spec: DestinationSpec, rows: Mapping[Key, Item], waiting: WaitingRuns, now: datetime
) -> dict[str, Any]:
    """Returns a destination as JSON data."""
    circuit = circuit_from(rows.get(breaker_key(spec.name)))
    runs = [run for run in waiting.runs if run.waits_for == WAITS_FOR + spec.name]
    oldest = min(runs, key=_received_at, default=None)
    queue = moment(rows.get(limit_key(spec.name), {}).get(RESERVATION, 0))
    paused = from_ms(circuit.paused_until)
    shown = spec.breaker is not None or circuit.held_since
    return {
        "destination": spec.name,
        "base_url": spec.base_url,
        "circuit": str(circuit.phase(to_ms(now))) if shown else None,
        "opened_by_hand": _opening(rows.get(breaker_key(spec.name), {})),
        "failures": circuit.failures,
        "next_probe": iso(_next_probe(circuit, now) if spec.breaker else None),
        "paused_until": iso(paused if paused > now else None),
        "rate": None if spec.rate is None else spelled_rate(spec.rate),
        "queue_until": iso(queue if queue > now else None),
        "waiting": len(runs),
        "waiting_is_complete": waiting.complete,
        "oldest": None if oldest is None else _run_object(oldest),
    }


def _opening(row: Item) -> dict[str, Any] | None:
    """Returns the opening by hand as JSON data; None without one."""
    if "held_since" not in row:
        return None
    at = iso(from_ms(row["held_since"]))
    return {"at": at, "by": row["held_by"], "reason": row["held_reason"]}


def _next_probe(circuit: Circuit, now: datetime) -> datetime | None:
    """Returns when a run may probe; None while the circuit is closed."""
    phase = circuit.phase(to_ms(now))
    if phase is Phase.CLOSED or circuit.held_since:
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
    if found["opened_by_hand"]:
        circuit += " by hand"
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
