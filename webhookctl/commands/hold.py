"""`hold`: lists and decides approval requests."""

from heapq import nsmallest
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
from webhook_inbox.handlers.effects.journal import Unstorable
from webhook_inbox.handlers.effects.manual_commit import NoDoubt
from webhookctl.checkout import known_manifest, require_known
from webhookctl.display.runs import hold_object
from webhookctl.display.times import iso
from webhookctl.errors import CommandError
from webhookctl.invocation import (
    By,
    EventId,
    Handler,
    Invocation,
    Limit,
    Reason,
    Source,
    caller,
    parsed,
    takes_options,
)

COLUMNS: Final = ("SINCE", "SOURCE", "EVENT_ID", "HANDLER", "HOLD", "SUBJECT", "REASON", "SHOWS")
MEANINGS: Final = {
    ApprovalOutcome.APPROVED: "approved; its run is sent",
    ApprovalOutcome.UNSENT: "approved; the reconciler sends its run within two minutes",
    ApprovalOutcome.DENIED: "denied; its run is skipped",
}

_NOTHING: Final = "no decision was recorded"

app: Final = typer.Typer(
    no_args_is_help=True, help="List and decide approval requests.", rich_markup_mode=None
)

HoldId = Annotated[
    str | None,
    typer.Option("--hold", metavar="ID", help="Decide only this approval request, as listed."),
]


@app.command("list")
@takes_options
def list_holds(
    call: Invocation, *, source: Source = None, handler: Handler = None, limit: Limit = 1000
) -> None:
    """List the runs that wait for approval, oldest first."""
    waiting = (
        hold
        for hold in holds(call.target.ledger())
        if source in {None, hold.run.source} and handler in {None, hold.run.handler}
    )
    found = nsmallest(limit, waiting, key=lambda hold: hold.since or EPOCH)
    if not found:
        require_known(call.target, source=source, handler=handler)
    if call.as_json:
        for hold in found:
            call.output.json(_object(hold))
        return
    if not found:
        call.output.note("No runs wait for approval.")
        return
    call.output.table(COLUMNS, [_row(hold) for hold in found])
    if len(found) == limit:
        call.output.note(f"Showing the oldest {limit}; see more with --limit, or filter.")
    call.output.note(
        call.pasteable(
            "Inspect with `webhookctl inbox inspect EVENT_ID`; decide with `webhookctl hold approve"
            " EVENT_ID --hold ID --reason TEXT`, or deny."
        )
    )


def _object(hold: ApprovalRequest) -> dict[str, Any]:
    """Returns an approval request as JSON data."""
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
    reason: Reason,
    by: By = None,
    happened: Annotated[
        bool,
        typer.Option("--happened", help="The effect in doubt happened; do not repeat it."),
    ] = False,
    result: Annotated[
        str | None, typer.Option(metavar="JSON", help="The effect's result; with --happened.")
    ] = None,
) -> None:
    """Approve a run; an effect in doubt is repeated with the same idempotency key.

    With --happened the effect is recorded as committed instead, and the handler gets --result.
    """
    if result is not None and not happened:
        raise typer.BadParameter("--result needs --happened")
    returned = None if result is None else parsed(result)
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
    reason: Reason,
    by: By = None,
) -> None:
    """Deny a run: it ends as skipped; effects that happened remain."""
    found = _the_one(call, event_id, source=source, handler=handler, hold_id=hold)
    who = by or caller(call.target)
    _show(call, found, _deciding(call).deny(found, by=who, reason=reason))


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
    """Returns the approval request; raises CommandError unless exactly one matches."""
    runs = call.runs(event_id, source, handler)
    if not runs:
        subject = f"run of {handler}" if handler else "run"
        raise CommandError(
            call.pasteable(f"no {subject} for an event {event_id}: see `webhookctl hold list`")
        )
    found = [ApprovalRequest(run) for run in runs if run.status is Status.HELD]
    meant = [hold for hold in found if hold_id in {None, hold.id}]
    if len(meant) == 1:
        return meant[0]
    if not found:
        there = "; ".join(_told(run) for run in runs)
        raise CommandError(
            call.pasteable(f"{there}: no approval request; see `webhookctl hold list`")
        )
    there = "; ".join(_told(hold.run) for hold in found)
    if not meant:
        raise CommandError(
            f"{hold_id} is no current approval request of {event_id}: {there}."
            " Inspect the event and decide again"
        )
    raise CommandError(f"{there}: choose one with --handler, --source or --hold")


def _told(run: Run) -> str:
    if run.status is not Status.HELD:
        return f"{run.handler} of {run.source} is {run.status}"
    hold = ApprovalRequest(run)
    shows = f" ({hold.shows})" if hold.shows else ""
    return f"{run.handler} of {run.source} is held for {hold.subject} as {hold.id}{shows}"


def _show(call: Invocation, hold: ApprovalRequest, decision: Decision) -> None:
    run = hold.run
    if decision.outcome is ApprovalOutcome.MOVED_ON:
        there = _told(decision.run) if decision.run else "the run no longer exists"
        but = "only the effect was recorded as committed" if decision.committed else _NOTHING
        raise CommandError(f"the run changed meanwhile, and {but}: {there}")
    if decision.outcome is ApprovalOutcome.EXPIRED:
        raise CommandError(
            f"the event {run.event_id} has expired with its runs: {_NOTHING};"
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
        call.output.note("The effect was already committed; its recorded result is kept.")
    call.output.note(
        call.pasteable(
            f"Follow it with `webhookctl inbox inspect {quote(run.event_id)}"
            f" --source {run.source}`."
        )
    )
