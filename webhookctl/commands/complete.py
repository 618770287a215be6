"""`complete`: what came of a job that a run waits for."""

import json
from typing import Annotated, Any, Final

import typer

from webhook_inbox.adapters.system import SystemRandomness
from webhook_inbox.domain.model import Overview
from webhook_inbox.handlers.completions.journal import WaitState
from webhook_inbox.handlers.completions.receiver import (
    CompletionOutcome,
    CompletionReceipt,
    Completions,
)
from webhook_inbox.handlers.completions.results import Ending, TooLarge, Unreadable, read
from webhook_inbox.handlers.completions.tokens import WaitAddress
from webhook_inbox.ledger.schema import dedupe_key
from webhookctl.checkout import known_manifest
from webhookctl.errors import CommandError
from webhookctl.invocation import Invocation, caller, takes_options
from webhookctl.naming import require_known

MEANINGS: Final = {
    CompletionOutcome.RECORDED: "recorded; its run goes on",
    CompletionOutcome.REPEATED: "known already; its run goes on",
    CompletionOutcome.LATE: "recorded; its run no longer waits, so replay the run to use it",
}


@takes_options
def complete(  # noqa: PLR0913 - one option for each thing that a person says
    call: Invocation,
    *,
    token: Annotated[
        str | None, typer.Argument(metavar="TOKEN", help="The job's, if you have it.")
    ] = None,
    event_id: Annotated[str | None, typer.Option(help="The event whose run waits.")] = None,
    source: Annotated[str | None, typer.Option(help="Of this source only.")] = None,
    handler: Annotated[str | None, typer.Option(help="Of this handler only.")] = None,
    effect: Annotated[str | None, typer.Option(metavar="NAME", help="Of this name only.")] = None,
    result: Annotated[
        str | None, typer.Option(metavar="JSON", help="What the job returned.")
    ] = None,
    error: Annotated[str | None, typer.Option(metavar="TEXT", help="Why it failed.")] = None,
    retry: Annotated[
        bool, typer.Option("--retry", help="Start another job; with --error.")
    ] = False,
    by: Annotated[str | None, typer.Option("--by", help="Who says so; you by default.")] = None,
) -> None:
    """Tell what came of a job, by its token or by the event whose run waits for it.

    Its run goes on with the result; with --error it fails, for good or, with --retry, until
    another job was started.
    """
    body = _body(result, error, retry=retry)
    if (token is None) == (event_id is None):
        raise typer.BadParameter("give the job's TOKEN, or --event-id")
    target = call.target
    completions = Completions(
        manifest=known_manifest(target.stage),
        table=target.table,
        lanes=target.lanes,
        clock=call.clock,
    )
    if token is not None:
        _show(call, completions.by_token(token, body))
        return
    place = _place(call, event_id or "", source=source, handler=handler, effect=effect)
    who = by or caller(target)
    _show(call, completions.by_name(place, _read(body), by=who, randomness=SystemRandomness()))


def _body(result: str | None, error: str | None, *, retry: bool) -> bytes:
    """Returns what the job itself would send."""
    if (result is None) == (error is None):
        raise typer.BadParameter("give --result or --error")
    if retry and error is None:
        raise typer.BadParameter("--retry needs --error")
    if error is not None:
        return json.dumps({"error": error, "retry": retry}).encode()
    try:
        returned = json.loads(result or "")
    except ValueError as wrong:
        raise typer.BadParameter(
            f"--result is no JSON ({wrong}); quote it, like --result '{{\"id\": 1}}'"
        ) from wrong
    return json.dumps({"result": returned}).encode()


def _read(body: bytes) -> Ending:
    try:
        return read(body)
    except (TooLarge, Unreadable) as error:
        raise CommandError(str(error)) from error


def _place(
    call: Invocation,
    event_id: str,
    *,
    source: str | None,
    handler: str | None,
    effect: str | None,
) -> WaitAddress:
    """Returns the wait that is meant; raises CommandError where that is none, or not clear."""
    ledger, now, key = call.target.ledger(), call.clock.now(), dedupe_key(event_id)
    names = [source] if source else list(call.target.urls)
    overviews = [found for name in names if (found := ledger.overview(name, key, now=now))]
    waits = [(place, row) for each in overviews for place, row in _waits(each)]
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
        raise CommandError(call.pasteable(f"no run waits for a job of event {event_id}"))
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
    call.output.note(
        call.pasteable(
            f"See `webhookctl inbox inspect {place.event_id} --source {place.source}` for what"
            " becomes of it."
        )
    )
