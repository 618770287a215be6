"""`audit`: lists the actions of operators."""

from typing import Annotated, Final

import typer

from webhook_inbox.domain.audit import AuditedAction
from webhookctl.display.audit import audit_row
from webhookctl.display.table import Column, Fit
from webhookctl.display.times import moment
from webhookctl.invocation import Invocation, Limit, Since, Until, takes_options

COLUMNS: Final = (
    Column("AT"),
    Column("ACTION"),
    Column("ABOUT", Fit.ID),
    Column("RESULT", Fit.NAME),
    Column("DETAILS", Fit.NOTE),
)


@takes_options
def audit(
    call: Invocation,
    *,
    since: Since = None,
    until: Until = None,
    action: Annotated[
        AuditedAction | None,
        typer.Option(metavar="NAME", help="Only this action, like replay or pause."),
    ] = None,
    by: Annotated[
        str | None,
        typer.Option("--by", metavar="NAME", help="Only actors whose name contains this."),
    ] = None,
    event: Annotated[
        str | None, typer.Option(metavar="EVENT_ID", help="Only actions that name this event.")
    ] = None,
    limit: Limit = 50,
) -> None:
    """List the actions of operators, newest first: those of the last 24 hours.

    An action without a result was begun and not finished. An unverified actor is a name that an
    invocation of the replay function gave. Actions are kept for 70 days.
    """
    now = call.clock.now()
    found = call.client.audit.list(
        since=None if since is None else moment(since, now),
        until=None if until is None else moment(until, now),
        action=action,
        by=by,
        event_id=event,
        limit=limit,
    )
    if call.as_json:
        call.output.results(found)
        return
    rows = [audit_row(entry) for entry in found]
    if not rows:
        call.output.note("No actions found; search further back with --since 7d.")
        return
    call.output.table(COLUMNS, rows, now=now)
    if found.full:
        call.output.note(f"Showing the newest {limit}; see more with --limit, or filter.")
    if event is not None:
        inspect = call.program.command("inbox inspect", argument=event)
        call.output.note(f"Replays by a filter name no events; see `{inspect}`.")
