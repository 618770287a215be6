"""`audit`: lists the actions of operators."""

from collections.abc import Iterator
from datetime import timedelta
from itertools import islice
from typing import Annotated, Any, Final

import typer

from webhook_inbox.client.times import iso
from webhook_inbox.domain.audit import AuditedAction, AuditEntry
from webhook_inbox.ledger.audit import find
from webhook_inbox.ledger.schema import dedupe_key
from webhook_inbox.replay.request import STOP_AT_FAILURES
from webhookctl.display.history import action_object
from webhookctl.display.output import counted
from webhookctl.display.table import Column, Fit
from webhookctl.display.times import moment
from webhookctl.invocation import Invocation, Limit, Since, Until, takes_options
from webhookctl.search import WINDOW

COLUMNS: Final = (
    Column("AT"),
    Column("ACTION"),
    Column("ABOUT", Fit.ID),
    Column("RESULT", Fit.NAME),
    Column("DETAILS", Fit.NOTE),
)
MOMENT: Final = timedelta(milliseconds=1)
UNFINISHED: Final = "not finished"
# The subject of an action that is not about events: the first of these in its request.
SUBJECTS: Final = ("secret", "destination", "handler", "tenant", "source")
# The values of a replay's request that `webhookctl replay` sends unless it is asked otherwise.
DEFAULTS: Final = {"rate_per_second": "10.0", "stop_at_failures": str(STOP_AT_FAILURES)}


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
    found = islice(_found(call, since, until, action=action, by=by, event=event), limit)
    if call.as_json:
        for entry in found:
            call.output.json(entry_object(entry))
        return
    entries = list(found)
    if not entries:
        call.output.note("No actions found; search further back with --since 7d.")
        return
    call.output.table(COLUMNS, [_row(entry) for entry in entries], now=call.clock.now())
    if len(entries) == limit:
        call.output.note(f"Showing the newest {limit}; see more with --limit, or filter.")
    if event is not None:
        inspect = call.program.command("inbox inspect", argument=event)
        call.output.note(f"Replays by a filter name no events; see `{inspect}`.")


def _found(
    call: Invocation,
    since: str | None,
    until: str | None,
    *,
    action: AuditedAction | None,
    by: str | None,
    event: str | None,
) -> Iterator[AuditEntry]:
    now = call.clock.now()
    high = now if until is None else moment(until, now)
    low = high - WINDOW if since is None else moment(since, now)
    # An action of this millisecond is listed.
    end = high + MOMENT if until is None else high
    for entry in find(call.target.table, since=low, until=end, now=now):
        if (
            action in {None, entry.action}
            and (by is None or by in str(entry.actor))
            and (event is None or dedupe_key(event) in entry.event_ids)
        ):
            yield entry


def entry_object(entry: AuditEntry) -> dict[str, Any]:
    """Returns an audit row as JSON data; absent values are null."""
    about = {"request": dict(entry.request), "event_ids": list(entry.event_ids)}
    return {"at": iso(entry.at), **action_object(entry), **about}


def _row(entry: AuditEntry) -> tuple[object, ...]:
    action = f"{entry.action}, forced" if entry.forced else entry.action
    asked = {name: value for name, value in entry.request.items() if _is_chosen(name, value)}
    request = ", ".join(_words(name, value) for name, value in asked.items())
    stopped = f"stopped: {entry.stopped}" if entry.stopped else ""
    details = (f"by {entry.actor}", entry.reason, stopped, request)
    return entry.at, action, _about(entry), _result(entry), tuple(filter(None, details))


def _is_chosen(name: str, value: str) -> bool:
    """Returns whether the request differs from what it is without this field."""
    return value not in {"", "False"} and DEFAULTS.get(name) != value


def _words(name: str, value: str) -> str:
    """Returns a field of a request as a person reads it: `tenant t1`, `new keys`."""
    words = name.replace("_", " ")
    if name == "stop_at_failures":
        return f"{words} {float(value):.0%}"
    return words if value == "True" else f"{words} {value}"


def _about(entry: AuditEntry) -> str:
    if len(entry.event_ids) == 1:
        return entry.event_ids[0]
    if entry.event_ids:
        return counted(len(entry.event_ids), "event")
    return next((entry.request[name] for name in SUBJECTS if name in entry.request), "")


def _result(entry: AuditEntry) -> str:
    if entry.counts is None:
        return UNFINISHED
    if entry.action == AuditedAction.SHOW_PERSONAL:
        return "shown"
    counts = [f"{count} {name.replace('_', ' ')}" for name, count in entry.counts.items()]
    return ", ".join([*counts, *(["stopped"] if entry.stopped else [])]) or "nothing"
