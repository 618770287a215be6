"""`hold`: runs that wait for a person's decision, and the decision."""

import json
from shlex import quote
from typing import Annotated, Any, Final

import typer

from webhook_inbox.adapters.system import SystemRandomness
from webhook_inbox.domain.model import Run, Status
from webhook_inbox.domain.timestamps import EPOCH
from webhook_inbox.handlers.approvals import (
    ApprovalOutcome,
    ApprovalRequest,
    Approvals,
    Decision,
    holds,
)
from webhook_inbox.handlers.effects.manual_commit import NoDoubt
from webhook_inbox.handlers.effects.results import Unstorable
from webhook_inbox.ledger.schema import dedupe_key
from webhookctl.checkout import known_manifest
from webhookctl.display.approvals import hold_object
from webhookctl.display.times import iso
from webhookctl.errors import CommandError
from webhookctl.invocation import Invocation, caller, takes_options
from webhookctl.naming import require_known

COLUMNS: Final = ("SINCE", "SOURCE", "EVENT_ID", "HANDLER", "HOLD", "SUBJECT", "REASON", "SHOWS")
MEANINGS: Final = {
    ApprovalOutcome.APPROVED: "approved, its message is sent",
    ApprovalOutcome.UNSENT: "approved; the reconciler sends its message within two minutes",
    ApprovalOutcome.DENIED: "denied: it is finished as skipped",
}

_NOTHING: Final = "nothing was decided"

app: Final = typer.Typer(
    no_args_is_help=True, help="Runs that wait for a person.", rich_markup_mode=None
)

EventId = Annotated[str, typer.Argument(metavar="EVENT_ID", help="The provider's id.")]
Source = Annotated[str | None, typer.Option(help="Of this source only.")]
Handler = Annotated[str | None, typer.Option(help="Of this handler only.")]
HoldId = Annotated[
    str | None,
    typer.Option("--hold", metavar="ID", help="As list shows it: refused if it is held anew."),
]
Why = Annotated[str, typer.Option("--reason", help="Kept with the run and in the audit.")]
By = Annotated[str | None, typer.Option("--by", help="Who decides; you by default.")]


@app.command("list")
@takes_options
def list_holds(call: Invocation, *, source: Source = None, handler: Handler = None) -> None:
    """List the runs that wait for a person, the one that waits longest first."""
    found = [
        hold
        for hold in holds(call.target.ledger())
        if source in {None, hold.run.source} and handler in {None, hold.run.handler}
    ]
    if not found:
        require_known(call.target, source=source, handler=handler)
    found.sort(key=lambda hold: hold.since or EPOCH)
    if call.as_json:
        for hold in found:
            call.output.json(_object(hold))
        return
    if not found:
        call.output.note("Nothing waits for a person.")
        return
    call.output.table(COLUMNS, [_row(hold) for hold in found])
    call.output.note(
        call.pasteable(
            "Look with `webhookctl inbox inspect EVENT_ID`; decide with `webhookctl hold approve"
            " EVENT_ID --hold ID --reason WHY`, or deny."
        )
    )


def _object(hold: ApprovalRequest) -> dict[str, Any]:
    """Returns a hold as JSON data."""
    run = hold.run
    about = {"event_id": run.event_id, "handler": run.handler, "type": run.type}
    return {"source": run.source, **about, **hold_object(run)}


def _row(hold: ApprovalRequest) -> tuple[object, ...]:
    run = hold.run
    named = (iso(hold.since), run.source, run.event_id, run.handler, hold.id)
    return (*named, hold.subject, hold.reason, hold.shows or "-")


@app.command("approve")
@takes_options
def approve(
    call: Invocation,
    *,
    event_id: EventId,
    source: Source = None,
    handler: Handler = None,
    hold: HoldId = None,
    reason: Why,
    by: By = None,
    happened: Annotated[
        bool,
        typer.Option("--happened", help="The effect in doubt did happen: it is not repeated."),
    ] = False,
    result: Annotated[
        str | None, typer.Option(metavar="JSON", help="What it returned; with --happened.")
    ] = None,
) -> None:
    """Let a run go on; an effect in doubt is then done again, with the same key.

    With --happened the effect is recorded as committed instead, and the handler is given the
    result.
    """
    if result is not None and not happened:
        raise typer.BadParameter("--result needs --happened: say that the effect did happen")
    returned = _parsed(result)
    found = _the_one(call, event_id, source=source, handler=handler, hold_id=hold)
    deciding, who = _deciding(call), by or caller(call.target)
    try:
        decision = (
            deciding.happened(found, returned, by=who, reason=reason)
            if happened
            else deciding.approve(found, by=who, reason=reason)
        )
    except (NoDoubt, Unstorable) as error:
        raise CommandError(str(error)) from error
    _show(call, found, decision)


@app.command("deny")
@takes_options
def deny(
    call: Invocation,
    *,
    event_id: EventId,
    source: Source = None,
    handler: Handler = None,
    hold: HoldId = None,
    reason: Why,
    by: By = None,
) -> None:
    """End a run as skipped; effects that have happened stay as they are."""
    found = _the_one(call, event_id, source=source, handler=handler, hold_id=hold)
    who = by or caller(call.target)
    _show(call, found, _deciding(call).deny(found, by=who, reason=reason))


def _parsed(result: str | None) -> Any:
    if result is None:
        return None
    try:
        return json.loads(result)
    except ValueError as error:
        raise typer.BadParameter(
            f"--result is no JSON ({error}); quote it, like --result '{{\"id\": 1}}'"
        ) from error


def _deciding(call: Invocation) -> Approvals:
    target = call.target
    return Approvals(
        manifest=known_manifest(target.stage),
        table=target.table,
        lanes=target.lanes,
        clock=call.clock,
        randomness=SystemRandomness(),
    )


def _the_one(
    call: Invocation, event_id: str, *, source: str | None, handler: str | None, hold_id: str | None
) -> ApprovalRequest:
    """Returns the hold that is meant; raises CommandError where that is none, or not clear."""
    runs = _runs(call, event_id, source, handler)
    found = [ApprovalRequest(run) for run in runs if run.status is Status.HELD]
    meant = [hold for hold in found if hold_id in {None, hold.id}]
    if len(meant) == 1:
        return meant[0]
    if not found:
        there = "; ".join(_told(run) for run in runs)
        raise CommandError(
            call.pasteable(f"{there}: nothing to decide; see `webhookctl hold list`")
        )
    there = "; ".join(_told(hold.run) for hold in found)
    if not meant:
        raise CommandError(
            f"{hold_id} is not what {event_id} is held for now. {there}."
            " Look at it, and decide again"
        )
    raise CommandError(f"{there}: choose one with --handler, --source or --hold")


def _runs(call: Invocation, event_id: str, source: str | None, handler: str | None) -> list[Run]:
    now, key, ledger = call.clock.now(), dedupe_key(event_id), call.target.ledger()
    names = [source] if source else list(call.target.urls)
    overviews = (ledger.overview(name, key, now=now) for name in names)
    runs = [run for overview in overviews if overview for run in overview.runs]
    found = [run for run in runs if handler in {None, run.handler}]
    if not found:
        require_known(call.target, source=source, handler=handler)
        of = f" of {handler}" if handler else ""
        raise CommandError(
            call.pasteable(f"no run{of} for an event {event_id}: see `webhookctl hold list`")
        )
    return found


def _told(run: Run) -> str:
    if run.status is not Status.HELD:
        return f"{run.handler} of {run.source} is {run.status}"
    hold = ApprovalRequest(run)
    shows = f" ({hold.shows})" if hold.shows else ""
    return f"{run.handler} of {run.source} is held for {hold.subject} as {hold.id}{shows}"


def _show(call: Invocation, hold: ApprovalRequest, decision: Decision) -> None:
    run = hold.run
    if decision.outcome is ApprovalOutcome.MOVED_ON:
        there = _told(decision.run) if decision.run else "the run is gone"
        but = "only that the effect happened was recorded" if decision.committed else _NOTHING
        raise CommandError(f"somebody was faster, and {but}: {there}")
    if decision.outcome is ApprovalOutcome.EXPIRED:
        raise CommandError(
            f"the event {run.event_id} has expired, and its runs with it: {_NOTHING};"
            " ask the provider to send it again"
        )
    if call.as_json:
        status = None if decision.run is None else str(decision.run.status)
        came = {"outcome": str(decision.outcome), "status": status}
        call.output.json({**_object(hold), **came, "committed": decision.committed})
        return
    call.output.line(
        f"{run.handler} of {run.event_id}, held for {hold.subject}: {MEANINGS[decision.outcome]}"
    )
    if decision.committed is False:
        call.output.note("The effect was committed before: its recorded result stands.")
    call.output.note(
        call.pasteable(
            f"See `webhookctl inbox inspect {quote(run.event_id)} --source {run.source}` for what"
            " becomes of it."
        )
    )
