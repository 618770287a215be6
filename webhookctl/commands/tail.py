"""`inbox tail`: shows events and the changes of their status as they happen."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Annotated, Any, Final

import typer

from webhook_inbox.client.metered import MeteredTable
from webhook_inbox.client.names import require_known
from webhook_inbox.client.times import iso
from webhook_inbox.domain.model import EventStatus, Overview, Run
from webhook_inbox.domain.quotas import token
from webhook_inbox.ledger.queries import Ledger, Received
from webhookctl.display.event import names_of
from webhookctl.display.output import priced
from webhookctl.display.times import moment
from webhookctl.explain.reason import line_of, reason_of
from webhookctl.following.arrivals import Arrivals
from webhookctl.following.changes import Changes
from webhookctl.following.connection import PAUSE, Connection
from webhookctl.invocation import (
    EventType,
    Handler,
    Invocation,
    Since,
    Source,
    Tenant,
    takes_options,
)
from webhookctl.search import Wanted

# Without --since, a tail begins with the events of the last minute.
BEFORE: Final = timedelta(minutes=1)
HOUR: Final = 3600
STATUS_WIDTH: Final = max(map(len, EventStatus))
# On a terminal the second line of an entry begins below the first one's status.
HANGING: Final = " " * len("00:00:00  ")


@takes_options
def tail(
    call: Invocation,
    *,
    source: Source = None,
    type_: EventType = None,
    handler: Handler = None,
    status: Annotated[
        EventStatus | None,
        typer.Option(metavar="STATUS", help="Only events and runs that get this status."),
    ] = None,
    tenant: Tenant = None,
    since: Since = None,
) -> None:
    """Show events and changes of status as they happen, until Ctrl-C; the last minute at first.

    Reads every 2 seconds. After an outage it continues where it was. The exit status is 130.
    """
    require_known(call.target, source=source, handler=handler)
    now = call.clock.now()
    begin = now - BEFORE if since is None else moment(since, now)
    table = MeteredTable(call.target.table)
    wanted = Wanted(source, type_, status, handler, tenant=tenant and token(tenant))
    live = LiveList(call, table, wanted, since=begin)
    connection = Connection(call.output, call.clock, to=call.target.name)
    connection.follow(live.poll, live=live.cost)


class LiveList:
    """Shows what each poll reads."""

    def __init__(
        self, call: Invocation, table: MeteredTable, wanted: Wanted, *, since: datetime
    ) -> None:
        self._call = call
        self._table = table
        self._ledger = Ledger(table=table)
        self._wanted = wanted
        self._arrivals = Arrivals(table, call.clock, since=since)
        self._changes = Changes(table, since=since)

    def poll(self) -> None:
        """Reads once, and shows the events that arrived and the runs that changed.

        Raises:
            Unavailable: the ledger failed.
        """
        for event in self._arrivals.poll():
            self._arrived(event)
        for run in filter(self._wanted.runs, self._changes.poll()):
            self._show(_run_object(run))

    def cost(self) -> str:
        """Returns the price of an hour of polls like the first one."""
        hour = priced(self._table.dollars * HOUR / PAUSE)
        return f"It reads every {PAUSE:g} s; an hour of such reads costs {hour}."

    def _arrived(self, event: Received) -> None:
        if not self._wanted.names(event):
            return
        now = self._call.clock.now()
        overview = self._ledger.overview(event.source, event.event_id, now=now)
        # An expired event; its row is gone, and its entry of the index is about to go.
        if overview is None:
            return
        self._changes.watch(overview)
        if self._wanted.fits(overview):
            self._show(_event_object(overview))

    def _show(self, data: dict[str, Any]) -> None:
        if self._call.as_json:
            self._call.output.json(data)
        else:
            self._call.output.text("  ".join(_cells(data)), hanging=HANGING)


def _event_object(overview: Overview) -> dict[str, Any]:
    event = overview.event
    return {
        "change": "received",
        "at": iso(event.received_at),
        "source": event.source,
        "type": event.type,
        "event_id": event.event_id,
        "status": str(overview.status),
        "handlers": names_of(overview),
    }


def _run_object(run: Run) -> dict[str, Any]:
    return {
        "change": "run",
        "at": iso(run.last_at),
        "source": run.source,
        "type": run.type,
        "event_id": run.event_id,
        "status": str(run.status),
        "handler": run.handler,
        "attempt_count": run.attempt_count,
        "reason": reason_of(run) or None,
        "error_line": line_of(run) or None,
    }


def _cells(data: dict[str, Any]) -> Iterator[str]:
    """Yields the columns of a line: time, status, source, type, id, and the run with its reason."""
    yield str(data["at"])[11:19]
    yield f"{data['status']:<{STATUS_WIDTH}}"
    yield from (data["source"], data["type"], data["event_id"])
    if data["change"] == "run":
        reason = " ".join(filter(None, (data["reason"], data["error_line"])))
        yield f"{data['handler']}: {reason}" if reason else data["handler"]
