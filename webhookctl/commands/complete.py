"""`complete`: records the result of a job that a run waits for."""

import json
from typing import Annotated, Any, Final

import typer

from webhook_inbox.client.names import require_known
from webhook_inbox.domain.model import Overview
from webhook_inbox.handlers.completions.journal import WaitState
from webhook_inbox.handlers.completions.receiver import (
    CompletionOutcome,
    CompletionReceipt,
    Completions,
)
from webhook_inbox.handlers.completions.results import Ending, TooLarge, Unreadable, read
from webhook_inbox.handlers.completions.tokens import WaitAddress, place_of
from webhookctl.commands.secrets import read_value
from webhookctl.errors import CommandError
from webhookctl.invocation import By, Handler, Invocation, Source, parsed, takes_options

STDIN: Final = "-"
MEANINGS: Final = {
    CompletionOutcome.RECORDED: "recorded; its run continues",
    CompletionOutcome.REPEATED: "already recorded; its run continues",
    CompletionOutcome.LATE: "recorded too late; replay the run to use it",
}


@takes_options
def complete(  # noqa: PLR0913 - one parameter per option
    call: Invocation,
    *,
    event_id: Annotated[
        str | None, typer.Argument(metavar="EVENT_ID", help="The event whose run waits.")
    ] = None,
    token: Annotated[
        str | None,
        typer.Option(help="Or the job's completion token; `-` reads it from standard input."),
    ] = None,
    source: Source = None,
    handler: Handler = None,
    effect: Annotated[
        str | None, typer.Option(metavar="NAME", help="Only the job with this name.")
    ] = None,
    result: Annotated[str | None, typer.Option(metavar="JSON", help="The job's result.")] = None,
    error: Annotated[str | None, typer.Option(metavar="TEXT", help="The job's error.")] = None,
    retry: Annotated[
        bool, typer.Option("--retry", help="Start another job; with --error.")
    ] = False,
    by: By = None,
) -> None:
    """Record the result of a job, named by the event whose run waits for it or by its token.

    The run continues with the result. With --error it fails permanently; with --retry it starts
    another job.
    """
    body = _body(result, error, retry=retry)
    if (token is None) == (event_id is None):
        raise typer.BadParameter("give either EVENT_ID or --token")
    if event_id is not None and place_of(event_id) is not None:
        # Not repeated: its holder may complete the job, and errors are logged.
        raise typer.BadParameter("EVENT_ID is a completion token: give it with --token")
    target = call.target
    completions = Completions(target.manifest, call.client._scope.ports)
    if token is not None:
        token = read_value("Completion token: ") if token == STDIN else token
        _show(call, completions.by_token(token, body))
        return
    place = _place(call, event_id or "", source=source, handler=handler, effect=effect)
    who = call.actor(by)
    _show(call, completions.by_name(place, _read(body), by=who))


def _body(result: str | None, error: str | None, *, retry: bool) -> bytes:
    """Returns the body that the job itself would send."""
    if (result is None) == (error is None):
        raise typer.BadParameter("give either --result or --error")
    if retry and error is None:
        raise typer.BadParameter("--retry needs --error")
    if error is not None:
        return json.dumps({"error": error, "retry": retry}).encode()
    return json.dumps({"result": parsed(result or "")}).encode()


def _read(body: bytes) -> Ending:
    try:
        return read(body)
    except (TooLarge, Unreadable) as error:
        raise CommandError(str(error)) from error


def _place(
    call: Invocation, event_id: str, *, source: str | None, handler: str | None, effect: str | None
) -> WaitAddress:
    """Returns the wait; raises CommandError unless exactly one matches."""
    waits = [found for each in call.overviews(event_id, source) for found in _waits(each)]
    meant = [
        (place, row)
        for place, row in waits
        if handler in {None, place.handler} and effect in {None, place.name}
    ]
    open_ = [place for place, row in meant if row["status"] == WaitState.WAITING]
    if len(meant) == 1 or len(open_) == 1:
        return open_[0] if open_ else meant[0][0]
    if not waits:
        require_known(call.target, source=source, handler=handler)
        raise CommandError(f"no run waits for a job of event {event_id}")
    there = "; ".join(f"{p.handler} of {p.source} for {p.name}: {r['status']}" for p, r in waits)
    raise CommandError(f"{there}: choose one with --source, --handler or --effect")


def _waits(overview: Overview) -> list[tuple[WaitAddress, Any]]:
    """Returns the newest job of each wait."""
    event = overview.event
    newest = {
        WaitAddress(event.source, event.event_id, row["handler"], row["name"]): row
        for row in sorted(overview.waits, key=lambda row: row["number"])
    }
    return list(newest.items())


def _show(call: Invocation, receipt: CompletionReceipt) -> None:
    place = receipt.place
    if place is None or receipt.outcome not in MEANINGS:
        raise CommandError(receipt.detail or str(receipt.outcome))
    if call.as_json:
        named = {"source": place.source, "event_id": place.event_id, "handler": place.handler}
        call.output.json({**named, "effect": place.name, "outcome": str(receipt.outcome)})
        return
    call.output.line(f"{place.name} of {place.handler}: {MEANINGS[receipt.outcome]}")
    inspect = call.program.command(
        "inbox inspect", "--source", place.source, argument=place.event_id
    )
    call.output.note(f"Follow it with `{inspect}`.")
