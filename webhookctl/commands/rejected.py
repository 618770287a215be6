"""`rejected`: lists, verifies again and releases deliveries that failed verification."""

from typing import Annotated, Final

import typer

from webhook_inbox.client.rejected import Rejection, RejectionFilter, ReleaseOutcome
from webhook_inbox.domain.errors import Reason
from webhookctl.checkout import Checkout
from webhookctl.command_tree import CommandTree
from webhookctl.display.event import body_object
from webhookctl.display.json_object import json_object
from webhookctl.display.rejected import full_minutes_note, print_rejected, print_results
from webhookctl.display.table import Column, Fit
from webhookctl.display.times import moment
from webhookctl.invocation import (
    Body,
    By,
    Invocation,
    Limit,
    ShowPersonal,
    Since,
    Source,
    Until,
    Why,
    takes_options,
)

COLUMNS: Final = (
    Column("RECEIVED"),
    Column("SOURCE", Fit.NAME),
    Column("ID", Fit.ID),
    Column("REASON"),
    Column("BYTES"),
    Column("STATE"),
)

Reasons = Annotated[
    list[Reason] | None,
    typer.Option(
        "--rejected-for",
        metavar="REASON",
        help=f"Only rejected for this reason; repeatable. One of: {', '.join(Reason)}.",
    ),
]
Ids = Annotated[list[str] | None, typer.Argument(metavar="ID", help="The ids, as listed.")]

app: Final = CommandTree(help="List and release rejected deliveries.")


@app.command("list")
@takes_options
def list_rejected(
    call: Invocation,
    *,
    source: Source = None,
    rejected_for: Reasons = None,
    since: Since = None,
    until: Until = None,
    limit: Limit = 50,
) -> None:
    """List rejected deliveries, newest first; they are stored for 7 days."""
    rejected, wanted = call.client.rejected, _wanted(call, (), source, rejected_for, since, until)
    listing = rejected.list(wanted, limit=limit)
    found = list(listing)
    for full in rejected.full_minutes(wanted, since=found[-1].received_at if found else None):
        call.output.note(full_minutes_note(full))
    if call.as_json:
        call.output.results(found)
        return
    if not found:
        call.output.note("No rejected deliveries found.")
        return
    call.output.table(COLUMNS, [_row(each) for each in found], now=call.clock.now())
    if listing.full:
        call.output.note(f"Showing the newest {limit}; see more with --limit, or filter.")
    again = call.program.command("rejected release")
    call.output.note(f"Verify them again with the current secrets: `{again}`.")


def _row(each: Rejection) -> tuple[object, ...]:
    state = "kept" if each.released_at is None else "released"
    return (each.received_at, each.source, each.id, each.reason, each.body_size, state)


@app.command("show")
@takes_options
def show(
    call: Invocation,
    *,
    id_: Annotated[str, typer.Argument(metavar="ID", help="The id, as listed.")],
    source: Source = None,
    body: Body = False,
    show_personal: ShowPersonal = False,
) -> None:
    """Show one rejected delivery; signatures and tokens are never printed."""
    rejected = call.client.rejected
    rejection = rejected.get(id_, source=source or "")
    if show_personal and not body:
        raise typer.BadParameter("--show-personal is about the body: add --body")
    shown: dict[str, str] = {}
    if body:
        reader = call.personal_reader(show=show_personal)
        content = rejected.body(id_, source=rejection.source, personal_to=reader)
        shown = body_object(content)
    if call.as_json:
        call.output.json({**json_object(rejection), **shown})
        return
    print_rejected(call.output, rejection)
    if rejection.released_at is None:
        again = call.program.command("rejected release", argument=rejection.id)
        call.output.note(f"Verify it again with `{again}`.")
    if body:
        call.output.line()
        call.output.lines("".join(shown.values()))


@app.command("release")
@takes_options
def release(  # noqa: PLR0913 - one parameter per option
    call: Invocation,
    *,
    ids: Ids = None,
    source: Source = None,
    rejected_for: Reasons = None,
    since: Since = None,
    until: Until = None,
    limit: Limit = 1000,
    reason: Why = "",
    by: By = None,
    yes: Annotated[
        bool, typer.Option("--yes", help="Accept the valid ones; without it, only verify them.")
    ] = False,
) -> None:
    """Accept rejected deliveries that are valid with the current secrets; a dry run without --yes.

    Each is verified as of its arrival and accepted once: the command is safe to repeat. Exit with 1
    if one fails in the dry run; with --yes, if a valid one is not accepted, or none is valid.
    """
    rejected = call.client.rejected
    wanted = _wanted(call, ids or (), source, rejected_for, since, until)
    checkout, stage = Checkout.required(), call.target.stage
    if yes:
        manifest, by_ = checkout.manifest(stage), call.actor(by)
        released = rejected.release(wanted, limit=limit, manifest=manifest, reason=reason, by=by_)
        results = list(released)
        outcomes = {each.result for each in results}
        none = bool(results) and not any(each.is_fine for each in outcomes)
        failed = none or ReleaseOutcome.CONFLICT in outcomes
    else:
        manifest = checkout.source_manifest(stage)
        results = list(rejected.verify(wanted, limit=limit, manifest=manifest))
        failed = any(not each.result.is_fine for each in results)
    print_results(call, results, limit)
    if failed:
        raise typer.Exit(1)


def _wanted(
    call: Invocation,
    ids: list[str] | tuple[()],
    source: str | None,
    reasons: list[Reason] | None,
    since: str | None,
    until: str | None,
) -> RejectionFilter:
    now = call.clock.now()
    low, high = (None if text is None else moment(text, now) for text in (since, until))
    return RejectionFilter(tuple(ids), tuple(reasons or ()), low, high, source or "")
