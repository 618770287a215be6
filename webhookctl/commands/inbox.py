"""`inbox`: lists and inspects events."""

from dataclasses import asdict, replace
from datetime import datetime, timedelta
from itertools import islice
from typing import Annotated, Final

import typer

from webhook_inbox.client.names import known_manifest, known_source, require_known
from webhook_inbox.client.suggestions import Command
from webhook_inbox.client.target import Target
from webhook_inbox.client.times import iso, spelled
from webhook_inbox.domain.audit import EventName
from webhook_inbox.domain.manifest import matches
from webhook_inbox.domain.model import EventStatus, Overview, Run, StoredEvent
from webhook_inbox.domain.ports import Item
from webhook_inbox.domain.quotas import token
from webhook_inbox.domain.timestamps import from_ms
from webhook_inbox.ingest.ignored import find_ignored
from webhook_inbox.ledger.pauses import RESUMPTIONS, TENANT_RESUMPTION, Subject, control_key
from webhook_inbox.ledger.schema import conflict_key, dedupe_key
from webhook_inbox.queue.line import TURN, Line
from webhookctl.command_tree import CommandTree
from webhookctl.display.event import advice, body_object, event_object, run_notes
from webhookctl.display.evidence import Logs
from webhookctl.display.inspection import Inspection, print_event
from webhookctl.display.personal import Masks, ShowPersonal
from webhookctl.display.table import ELLIPSIS, Column, Fit
from webhookctl.display.times import moment
from webhookctl.errors import CommandError
from webhookctl.explain.next_action import Steps
from webhookctl.invocation import (
    Body,
    EventId,
    EventType,
    Invocation,
    Limit,
    Since,
    Source,
    Tenant,
    Until,
    takes_options,
)
from webhookctl.search import ATTENDED, WINDOW, Wanted, find

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
# The attempts left do not matter for events in these statuses.
SETTLED: Final = frozenset({EventStatus.DONE, EventStatus.SKIPPED, EventStatus.ACCEPTED})

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
    wanted = Wanted(source, type_, status, handler, low, high, tenant and token(tenant))
    found = islice(find(call.target.table, wanted, now=now), limit)
    if call.as_json:
        # One at a time, so that any limit needs little memory.
        count = 0
        for count, overview in enumerate(found, start=1):  # noqa: B007 - the last number
            call.output.json(
                event_object(overview, now=now, logs=_logs(call.target), program=call.program)
            )
        if not count:
            require_known(call.target, source=source, handler=handler)
        return
    rows = [_row(overview, now) for overview in found]
    if rows:
        call.output.table(COLUMNS, rows, now=now)
    else:
        require_known(call.target, source=source, handler=handler)
    _hint(call, wanted, count=len(rows), limit=limit)


def _row(overview: Overview, now: datetime) -> tuple[object, ...]:
    event = overview.event
    shown = (event.received_at, event.source, event.type, event.event_id)
    return (*shown, overview.status, run_notes(overview, now=now))


def _hint(call: Invocation, wanted: Wanted, *, count: int, limit: int) -> None:
    if count == limit:
        call.output.note(f"Showing the newest {limit}; see more with --limit, or filter.")
    elif count == 0:
        everywhere = wanted.since is not None or wanted.status in ATTENDED
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
    now, target = call.clock.now(), call.target
    if show_personal and not body:
        raise typer.BadParameter("--show-personal is about the body: add --body")
    overview = (
        the_one_shown(call, event_id, source, show=show_personal, command="inbox inspect")
        if body
        else the_one(call, event_id, source, body=False)
    )
    overview = at_present(target, overview, now)
    handlers = {} if overview.status in SETTLED else known_manifest(target).handlers
    limits = {name: spec.max_attempts for name, spec in handlers.items()}
    shown = body_object(overview.event.body) if body else {}
    if call.as_json:
        told = event_object(
            overview, now=now, limits=limits, logs=_logs(target), program=call.program
        )
        call.output.json({**told, **shown})
        return
    steps = advice(overview, now=now, limits=limits, program=call.program)
    _print(call, overview, steps, verbose=verbose)
    if body:
        call.output.line()
        call.output.lines("".join(shown.values()))


def _print(call: Invocation, overview: Overview, steps: Steps, *, verbose: bool) -> None:
    target, event, now = call.target, overview.event, call.clock.now()
    spec = known_source(target, event.source)
    provider = event.source if spec is None else spec.provider
    see, logs = _see_body(call, event), _see_logs(target, overview)
    found = Inspection(overview, provider, steps, see, now, logs=logs, verbose=verbose)
    print_event(call.output, found)
    for words in conflicts(target, event.source, event.event_id):
        call.output.line()
        call.output.line(words)


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
    target, now = call.target, call.clock.now()
    high = now if until is None else moment(until, now)
    low = high - WINDOW if since is None else moment(since, now)
    found = [
        each
        for name in ([source] if source else target.urls)
        for each in find_ignored(target.table, name, since=low, until=high, now=now)
        if type_ is None or (each.type is not None and matches((type_,), each.type))
    ]
    if not found:
        require_known(target, source=source, handler=None)
    if call.as_json:
        for each in found:
            call.output.json({**asdict(each), "last_at": iso(each.last_at)})
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


def _see_logs(target: Target, overview: Overview) -> list[str]:
    if target.local:
        return ["in the terminal of `webhookctl dev`"]
    return list(_logs(target).commands(overview))


def _logs(target: Target) -> Logs:
    return Logs(target.log_groups, target.region)


def at_present(target: Target, overview: Overview, now: datetime) -> Overview:
    """Returns an event whose waiting runs have their present place in line, or their resumption."""
    runs = (_resumed(target, run) for run in overview.runs)
    return replace(overview, runs=tuple(_in_line(target, run, now) for run in runs))


def _in_line(target: Target, run: Run, now: datetime) -> Run:
    """Returns a run that waits for its turn, with its present place as its error."""
    if run.waits_for != TURN:
        return run
    line = Line(target.table, run.handler, run.ordering_key, blocks=True).waiting(now)
    if run.event_id not in line:
        return run
    place = f"it is number {line.index(run.event_id) + 1} of {len(line)} in the line"
    return replace(run, last_error=f"{place} of {run.ordering_key}; the first is {line[0]}")


def _resumed(target: Target, run: Run) -> Run:
    """Returns a run that waits for a resumption which has happened, with that as its reason."""
    if run.waits_for not in RESUMPTIONS:
        return run
    subject, name = Subject.HANDLER, run.handler
    if run.waits_for == TENANT_RESUMPTION:
        subject, name = Subject.TENANT, run.tenant
    row = target.table.get(control_key(name, subject))
    if row is None or row["paused"]:
        return run
    why = f"{name} was resumed by {row['by']} at {spelled(from_ms(row['changed_at']))}"
    return replace(run, waits_for="its turn after the pause", last_error=why)


def the_one_shown(
    call: Invocation, event_id: str, source: str | None, *, show: bool, command: str
) -> Overview:
    """Returns the event with its body, whose personal fields are masked unless `show`.

    Raises CommandError unless exactly one event matches.
    """
    overview = the_one(call, event_id, source, body=not show)
    event = EventName(overview.event.source, overview.event.event_id)
    masks = Masks(call, show=show, command=command, event=event)
    if show:
        # Read after the audit row was written.
        overview = the_one(call, event_id, event.source, body=True)
    return replace(overview, event=masks.event(overview.event))


def the_one(call: Invocation, event_id: str, source: str | None, *, body: bool) -> Overview:
    """Returns the event; raises CommandError unless exactly one matches."""
    if not event_id:
        listed = call.program.command("inbox list")
        raise CommandError(f"EVENT_ID is empty: use an id from `{listed}`")
    found = call.overviews(event_id, source, with_body=body)
    if len(found) > 1:
        names = ", ".join(overview.event.source for overview in found)
        raise CommandError(f"{event_id} exists in {names}: choose one with --source")
    if not found:
        raise CommandError(
            _unknown(call, dedupe_key(event_id), [source] if source else list(call.target.urls))
        )
    return found[0]


def _unknown(call: Invocation, event_id: str, sources: list[str]) -> str:
    if ELLIPSIS in event_id:
        whole = call.program.command("inbox list", "--json")
        return f"{event_id} is a shortened id: give the complete one, as in `{whole}`"
    refused = [w for name in sources for w in conflicts(call.target, name, event_id)]
    if refused:
        return f"the event has expired; {'; '.join(refused)}"
    for name in sources:
        require_known(call.target, source=name, handler=None)
    return (
        f"no event {event_id} of {', '.join(sources) or 'any source'}: check the id at the"
        f" provider, search with `{call.program.command('inbox list')}`, or ask the provider to"
        " send it again"
        " (verified events are stored for 35 days)"
    )


def conflicts(target: Target, source: str, event_id: str) -> list[str]:
    """Returns the conflicting deliveries with this id (G7)."""
    rows = target.table.query(conflict_key(source, event_id, "").pk)
    return [
        f"{source}: a delivery with this id and different content was rejected as a conflict"
        f" (fingerprint {row['fingerprint']}, stored {row['stored_fingerprint']});"
        f" {_kept(target, row)}"
        for row in rows
    ]


def _kept(target: Target, row: Item) -> str:
    """Returns where the content of a conflicting delivery is; no command shows it."""
    if "unstored" in row:
        return "its content was not stored, since the event was erased before"
    if "erased_at" in row:
        return "its content was erased"
    if "arriving" in row:
        return "its content is not stored: ingest failed, and the provider sends it again"
    large = f", its body in the bucket {target.bucket_name}" if "body_ref" in row else ""
    return (
        f"its content is kept for 35 days in the table {target.table_name}, pk {row['pk']}, sk"
        f" {row['sk']}{large}"
    )
