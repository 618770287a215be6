"""`destinations`: lists the destinations, and opens and closes their circuits by hand."""

from datetime import datetime
from typing import Annotated, Final

import typer

from webhook_inbox.client.destinations import ChangedCircuit, DestinationStatus
from webhook_inbox.client.times import relative, span
from webhook_inbox.domain.printable import counted
from webhookctl.command_tree import CommandTree
from webhookctl.display.table import Column, Fit
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
    found = list(call.client.destinations.list())
    if call.as_json:
        call.output.results(found)
        return
    if not found:
        call.output.note("The deployed inbox has no destinations.")
        return
    call.output.table(COLUMNS, [_row(each, call.clock.now()) for each in found])
    for each in found:
        if (oldest := each.oldest) is not None:
            options = ("--source", oldest.source)
            inspect = call.program.command("inbox inspect", *options, argument=oldest.event_id)
            call.output.note(f"The oldest run that waits for {each.destination}: `{inspect}`.")


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
    _show(call, call.client.destinations.open(name, reason=reason, by=call.actor(by)))
    close = call.program.command("destinations close", argument=name)
    call.output.note(f"Takes effect within a second. Close it with `{close}`.")


@app.command("close")
@takes_options
def close_destination(call: Invocation, *, name: Name, reason: Why = "", by: By = None) -> None:
    """Close a circuit that a person or failures opened; waiting runs return at the drain rate."""
    _show(call, call.client.destinations.close(name, reason=reason, by=call.actor(by)))
    call.output.note("Waiting runs return within minutes, at the drain rate of the destination.")


def _show(call: Invocation, changed: ChangedCircuit) -> None:
    state = "open by hand" if changed.opened_by_hand else "closed"
    call.output.result(changed, f"The circuit of {changed.destination} is {state}.")


def _row(each: DestinationStatus, now: datetime) -> tuple[object, ...]:
    circuit = each.circuit or "none"
    if each.opened_by_hand:
        circuit += " by hand"
    if each.failures:
        circuit += f", {counted(each.failures, 'failure')}"
    if each.paused_until:
        circuit += f", paused for {span(each.paused_until - now)}"
    least = "" if each.waiting_is_complete else "at least "
    age = "-" if each.oldest is None else relative(each.oldest.received_at, now)
    probe = "-" if each.next_probe is None else _ahead(each.next_probe, now)
    return (each.destination, circuit, each.rate or "-", f"{least}{each.waiting}", age, probe)


def _ahead(at: datetime, now: datetime) -> str:
    return relative(at, now) if at > now else "now"
