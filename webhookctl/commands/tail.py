"""`inbox tail`: shows events and the changes of their status as they happen."""

from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Annotated, Final

import typer

from webhook_inbox.client.search import EventQuery
from webhook_inbox.client.tail import PAUSE, EventArrival, RunChange
from webhook_inbox.client.times import iso, spelled
from webhook_inbox.domain.errors import Unavailable
from webhook_inbox.domain.model import EventStatus
from webhook_inbox.domain.ports import Clock
from webhook_inbox.domain.quotas import token
from webhookctl.display.output import Output, priced
from webhookctl.display.times import moment
from webhookctl.errors import explain
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
# The exit status of a command that the user interrupted.
INTERRUPTED: Final = 130


class Connection:
    """Polls every 2 seconds; after an outage it continues where it was.

    Says `connecting`, `live`, and `stale since` with the reason, each when it changes.
    """

    def __init__(self, output: Output, clock: Clock, *, to: str) -> None:
        self._output = output
        self._clock = clock
        self._to = to
        self._current_at: datetime | None = None
        self._stale = False

    def follow(self, poll: Callable[[], None], *, live: Callable[[], str]) -> None:
        """Polls until an interrupt; exits with 130.

        Args:
            poll: reads once and shows the result.
            live: returns what to say after the first poll.

        Raises:
            Unavailable: the first poll failed; later ones are repeated.
        """
        self._output.note(f"Connecting to {self._to}.")
        try:
            while True:
                self._once(poll, live)
                self._clock.sleep(PAUSE)
        except KeyboardInterrupt as stopped:
            raise typer.Exit(INTERRUPTED) from stopped

    def _once(self, poll: Callable[[], None], live: Callable[[], str]) -> None:
        try:
            poll()
        except Unavailable as error:
            if self._current_at is None:
                raise
            if not self._stale:
                since = spelled(self._current_at)
                self._output.note(f"Stale since {since}: {explain(error)}. Trying again.")
            self._stale = True
            return
        first, self._current_at = self._current_at is None, self._clock.now()
        if first:
            self._output.note(f"Live. {live()}")
        elif self._stale:
            self._output.note("Live again; nothing was left out.")
        self._stale = False


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
