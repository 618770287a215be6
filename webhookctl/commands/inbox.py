"""`inbox list` and `inbox inspect`: what came in, and what became of it."""

from datetime import timedelta
from itertools import islice
from typing import Annotated, Final

import typer

from webhook_inbox.domain.model import EventStatus, Overview
from webhook_inbox.ledger.schema import conflict_key, dedupe_key
from webhookctl.checkout import known_limits, known_provider
from webhookctl.display.event import advice, body_object, event_object, print_event, runs_in_short
from webhookctl.display.times import iso, moment
from webhookctl.errors import CommandError
from webhookctl.invocation import Invocation, takes_options
from webhookctl.naming import require_known
from webhookctl.search import ATTENDED, WINDOW, Wanted, find
from webhookctl.target import Target

HOUR: Final = timedelta(hours=1)
COLUMNS: Final = ("RECEIVED", "SOURCE", "TYPE", "EVENT_ID", "STATUS", "RUNS")
# Of an event in these nothing is waited for, so nobody asks how many attempts are left.
SETTLED: Final = frozenset({EventStatus.DONE, EventStatus.SKIPPED, EventStatus.ACCEPTED})

app: Final = typer.Typer(no_args_is_help=True, help="Look at events.", rich_markup_mode=None)


@app.command("list")
@takes_options
def list_events(
    call: Invocation,
    source: Annotated[str | None, typer.Option(help="Of this source only.")] = None,
    type_: Annotated[str | None, typer.Option("--type", help="A glob, like 'invoice.*'.")] = None,
    status: Annotated[EventStatus | None, typer.Option(help="In this status only.")] = None,
    handler: Annotated[
        str | None, typer.Option(help="With a run of this handler; --status is then that run's.")
    ] = None,
    since: Annotated[
        str | None, typer.Option(help="30m, 2h, 7d (ago), or a time; the last 24 h by default.")
    ] = None,
    limit: Annotated[int, typer.Option(min=1, help="At most so many.")] = 50,
) -> None:
    """List events, newest first.

    Events in dead_letter, held, failed, deferred and pending are found however old they are.
    """
    now = call.clock.now()
    low = None if since is None else moment(since, now)
    wanted = Wanted(source, type_, status, handler, low)
    found = list(islice(find(call.target.table, wanted, now=now), limit))
    if not found:
        require_known(call.target, source=source, handler=handler)
    if call.as_json:
        for overview in found:
            call.output.json(event_object(overview, now=now))
        return
    if found:
        call.output.table(COLUMNS, [_row(overview) for overview in found])
    _hint(call, wanted, count=len(found), limit=limit)


def _row(overview: Overview) -> tuple[object, ...]:
    event = overview.event
    shown = (iso(event.received_at), event.source, event.type, event.event_id)
    return (*shown, overview.status, runs_in_short(overview))


def _hint(call: Invocation, wanted: Wanted, *, count: int, limit: int) -> None:
    if count == limit:
        call.output.note(f"The newest {limit}; more with --limit, or narrow it down.")
    elif count == 0:
        everywhere = wanted.since is not None or wanted.status in ATTENDED
        where = (
            ""
            if everywhere
            else f" in the last {WINDOW // HOUR} hours; look further with --since 7d"
        )
        call.output.note(f"No such events{where}.")


@app.command("inspect")
@takes_options
def inspect_event(
    call: Invocation,
    *,
    event_id: Annotated[str, typer.Argument(metavar="EVENT_ID", help="The provider's id.")],
    source: Annotated[
        str | None, typer.Option(help="Of this source; by default all are tried.")
    ] = None,
    body: Annotated[bool, typer.Option("--body", help="Print the body as well.")] = False,
) -> None:
    """Show one event: its runs, attempts and effects, and what to do next."""
    if not event_id:
        raise CommandError(
            call.pasteable("EVENT_ID is empty: give one as `webhookctl inbox list` shows it")
        )
    now, target, output = call.clock.now(), call.target, call.output
    overview = _the_one(call, event_id, [source] if source else list(target.urls), body=body)
    event = overview.event
    limits = {} if overview.status in SETTLED else known_limits(target.stage)
    if call.as_json:
        shown = body_object(event.body) if body else {}
        output.json({**event_object(overview, now=now, limits=limits), **shown})
        return
    provider = known_provider(event.source, target.stage)
    words = call.pasteable(advice(overview, now=now, limits=limits))
    print_event(output, overview, provider=provider, now=now, words=words)
    for words in _conflicts(target, event.source, event.event_id):
        output.line()
        output.line(words)
    if body:
        output.line()
        output.raw("".join(body_object(event.body).values()))


def _the_one(call: Invocation, event_id: str, sources: list[str], *, body: bool) -> Overview:
    """Returns the event; raises CommandError where there is none, or more than one."""
    now, key = call.clock.now(), dedupe_key(event_id)
    ledger = call.target.ledger(with_bodies=body)
    overviews = (ledger.overview(name, key, now=now, with_body=body) for name in sources)
    found = [overview for overview in overviews if overview is not None]
    if len(found) > 1:
        names = ", ".join(overview.event.source for overview in found)
        raise CommandError(f"{event_id} is an event of {names}: choose one with --source")
    if not found:
        raise CommandError(_unknown(call, key, sources))
    return found[0]


def _unknown(call: Invocation, event_id: str, sources: list[str]) -> str:
    refused = [w for name in sources for w in _conflicts(call.target, name, event_id)]
    if refused:
        return f"the event itself has expired; {'; '.join(refused)}"
    for name in sources:
        require_known(call.target, source=name, handler=None)
    return call.pasteable(
        f"no event {event_id} of {', '.join(sources) or 'any source'}: compare the id with the"
        " provider's, look it up with `webhookctl inbox list`, or ask the provider to send it again"
        " (events are kept for 35 days, and only those that were verified)"
    )


def _conflicts(target: Target, source: str, event_id: str) -> list[str]:
    """Returns what is known of deliveries with this id that were refused (G7)."""
    rows = target.table.query(conflict_key(source, event_id, "").pk)
    return [
        f"{source}: a delivery of this id with other content was refused as a conflict"
        f" (fingerprint {row['fingerprint']}, stored {row['stored_fingerprint']})"
        for row in rows
    ]
