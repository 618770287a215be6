"""`inbox`: lists and inspects events."""

from datetime import datetime, timedelta
from typing import Annotated, Final

import typer

from webhook_inbox.client.event_state import EventDetails, EventState
from webhook_inbox.client.evidence import Logs
from webhook_inbox.client.search import ATTENDED, WINDOW, EventQuery
from webhook_inbox.client.suggestions import Command
from webhook_inbox.client.target import Target
from webhook_inbox.domain.model import EventStatus, StoredEvent
from webhook_inbox.domain.quotas import token
from webhookctl.command_tree import CommandTree
from webhookctl.display.event import body_object, event_object, run_notes
from webhookctl.display.inspection import Inspection, print_event
from webhookctl.display.table import Column, Fit
from webhookctl.display.times import moment
from webhookctl.invocation import (
    Body,
    EventId,
    EventType,
    Invocation,
    Limit,
    ShowPersonal,
    Since,
    Source,
    Tenant,
    Until,
    takes_options,
)

HOUR: Final = timedelta(hours=1)
COLUMNS: Final = (
    Column("RECEIVED"),
    Column("SOURCE", Fit.NAME),
    Column("TYPE", Fit.NAME),
    Column("EVENT_ID", Fit.ID),
    Column("STATUS"),
    Column("RUNS", Fit.NOTE),
)
IGNORED_COLUMNS: Final = (
    Column("SOURCE", Fit.NAME),
    Column("TYPE", Fit.NAME),
    Column("COUNT"),
    Column("LAST"),
)
# The row of the types that have no count of their own.
OTHERS: Final = "(other types)"

app: Final = CommandTree(help="List and inspect events.")


@app.command("list")
@takes_options
def list_events(
    call: Invocation,
    source: Source = None,
    type_: EventType = None,
    status: Annotated[
        EventStatus | None,
        typer.Option(
            metavar="STATUS", help=f"Only events in this status: {', '.join(EventStatus)}."
        ),
    ] = None,
    handler: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Only events with a run of this handler; --status then filters by that run.",
        ),
    ] = None,
    tenant: Tenant = None,
    since: Since = None,
    until: Until = None,
    limit: Limit = 50,
) -> None:
    """List events, newest first: those of the last 24 hours, unless --since is given.

    --status dead_letter, held, failed, deferred and pending find events of any age.
    """
    now = call.clock.now()
    low, high = (None if text is None else moment(text, now) for text in (since, until))
    query = EventQuery(source, type_, status, handler, low, high, tenant and token(tenant))
    found = call.client.events.list(query, limit=limit)
    if call.as_json:
        # One at a time, so that any limit needs little memory.
        call.output.results(found)
        return
    rows = [_row(state, now) for state in found]
    if rows:
        call.output.table(COLUMNS, rows, now=now)
    _hint(call, query, count=len(rows), limit=limit)


def _row(state: EventState, now: datetime) -> tuple[object, ...]:
    event = state.event
    shown = (event.received_at, event.source, event.type, event.event_id)
    return (*shown, state.status, run_notes(state, now=now))


def _hint(call: Invocation, query: EventQuery, *, count: int, limit: int) -> None:
    if count == limit:
        call.output.note(f"Showing the newest {limit}; see more with --limit, or filter.")
    elif count == 0:
        everywhere = query.since is not None or query.status in ATTENDED
        where = (
            ""
            if everywhere
            else f" in the last {WINDOW // HOUR} hours; search further back with --since 7d"
        )
        call.output.note(f"No events found{where}.")


@app.command("inspect")
@takes_options
def inspect_event(
    call: Invocation,
    *,
    event_id: EventId,
    source: Source = None,
    body: Body = False,
    show_personal: ShowPersonal = False,
    verbose: Annotated[
        bool,
        typer.Option(
            "--verbose", "-v", help="Show fingerprint, generations, leases and workers as well."
        ),
    ] = False,
) -> None:
    """Show an event's status, reasons and next action, then its attempts and effects."""
    if show_personal and not body:
        raise typer.BadParameter("--show-personal is about the body: add --body")
    reader = call.personal_reader(show=show_personal)
    found = call.client.events.get(event_id, source=source, with_body=body, personal_to=reader)
    shown = body_object(found.event.body) if body else {}
    if call.as_json:
        call.output.json({**event_object(found), **shown})
        return
    see, logs = _see_body(call, found.event), _see_logs(call.target, found)
    print_event(call.output, Inspection(found, see, call.clock.now(), logs=logs, verbose=verbose))
    if body:
        call.output.line()
        call.output.lines("".join(shown.values()))


@app.command("ignored")
@takes_options
def list_ignored(
    call: Invocation,
    *,
    source: Source = None,
    type_: EventType = None,
    since: Since = None,
    until: Until = None,
) -> None:
    """List the types that were acknowledged and not stored, with counts: by default since 24h ago.

    A source does not store events of types that its `types` in inbox.toml exclude. They are counted
    per UTC day; --since and --until select whole days.
    """
    now = call.clock.now()
    high = now if until is None else moment(until, now)
    low = high - WINDOW if since is None else moment(since, now)
    found = list(call.client.events.ignored(source=source, type_=type_, since=low, until=high))
    if call.as_json:
        call.output.results(found)
    elif found:
        rows = [(each.source, each.type or OTHERS, each.count, each.last_at) for each in found]
        call.output.table(IGNORED_COLUMNS, rows, now=now)
        call.output.note(
            f"Counted since {low:%Y-%m-%d} (UTC); the events are not stored. To store a type, add"
            " it to the source's `types` in inbox.toml, and deploy."
        )
    else:
        call.output.note(f"No ignored types since {low:%Y-%m-%d} (UTC).")


def _see_body(call: Invocation, event: StoredEvent) -> Command:
    options = ("--source", event.source, "--body")
    return call.program.command("inbox inspect", *options, argument=event.event_id)


def _see_logs(target: Target, details: EventDetails) -> list[str]:
    if target.local:
        return ["in the terminal of `webhookctl dev`"]
    logs = Logs(target.log_groups, target.region)
    return list(logs.commands(details.event, details.begun))
