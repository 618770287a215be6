"""`inbox tail`: shows events and the changes of their status as they happen."""

from collections.abc import Iterator
from typing import Annotated, Final

import typer

from webhook_inbox.client.search import EventQuery
from webhook_inbox.client.tail import PAUSE, EventArrival, RunChange
from webhook_inbox.client.times import iso
from webhook_inbox.domain.model import EventStatus
from webhook_inbox.domain.quotas import token
from webhookctl.display.output import priced
from webhookctl.display.times import moment
from webhookctl.following.connection import Connection
from webhookctl.invocation import (
    EventType,
    Handler,
    Invocation,
    Since,
    Source,
    Tenant,
    takes_options,
)

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
    begin = None if since is None else moment(since, call.clock.now())
    query = EventQuery(source, type_, status, handler, tenant=tenant and token(tenant))
    changes = call.client.events.tail(query, since=begin)

    def poll() -> None:
        for each in changes.poll():
            if call.as_json:
                call.output.results([each])
            else:
                call.output.text("  ".join(_cells(each)), hanging=HANGING)

    def cost() -> str:
        hour = priced(changes.dollars_per_hour)
        return f"It reads every {PAUSE:g} s; an hour of such reads costs {hour}."

    Connection(call.output, call.clock, to=call.target.name).follow(poll, live=cost)


def _cells(change: EventArrival | RunChange) -> Iterator[str]:
    """Yields the columns of a line: time, status, source, type, id, and the run with its reason."""
    yield str(iso(change.at))[11:19]
    yield f"{change.status:<{STATUS_WIDTH}}"
    yield from (change.source, change.type, change.event_id)
    if isinstance(change, RunChange):
        reason = " ".join(filter(None, (change.reason, change.error_line)))
        yield f"{change.handler}: {reason}" if reason else change.handler
