"""Follows an inbox: the events that arrive, and the runs whose status changes."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from webhook_inbox.client.arrivals import Arrivals
from webhook_inbox.client.changes import Changes
from webhook_inbox.client.metered import MeteredTable
from webhook_inbox.client.reasons import line_of, reason_of
from webhook_inbox.client.scope import Scope
from webhook_inbox.client.search import EventQuery
from webhook_inbox.domain.model import Run
from webhook_inbox.ledger.queries import Ledger, Received

# The seconds between two polls, at least.
PAUSE: Final = 2.0
HOUR: Final = 3600


@dataclass(frozen=True, slots=True)
class EventArrival:
    """An event that arrived, in its present status; `change` is "received"."""

    change: str
    at: datetime
    source: str
    type: str
    event_id: str
    status: str
    handlers: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RunChange:
    """A run whose status changed; `change` is "run". An absent value is None.

    Attributes:
        at: when it changed.
        reason: its error, or the reason why it waits, is held or was skipped.
        error_line: the line of the handler that raised its error.
    """

    change: str
    at: datetime | None
    source: str
    type: str
    event_id: str
    status: str
    handler: str
    attempt_count: int
    reason: str | None
    error_line: str | None


class Tail:
    """The changes that match, in their order; each poll continues where the last one ended."""

    def __init__(self, scope: Scope, query: EventQuery, *, since: datetime) -> None:
        self._clock = scope.clock
        self._table = MeteredTable(scope.table)
        self._ledger = Ledger(table=self._table)
        self._query = query
        self._arrivals = Arrivals(self._table, scope.clock, since=since)
        self._changes = Changes(self._table, since=since)
        self._polls = 0

    @property
    def dollars_per_hour(self) -> float:
        """The estimated price of an hour of polls like those so far."""
        return self._table.dollars / max(self._polls, 1) * HOUR / PAUSE

    def poll(self) -> Iterator[EventArrival | RunChange]:
        """Yields what changed since the last poll.

        Raises:
            Unavailable: the ledger failed; the next poll yields what this one has not.
        """
        for event in self._arrivals.poll():
            yield from self._arrived(event)
        for run in filter(self._query.runs, self._changes.poll()):
            yield _change(run)
        self._polls += 1

    def __iter__(self) -> Iterator[EventArrival | RunChange]:
        """Yields all changes from now on; reads every 2 seconds, for ever.

        Raises:
            Unavailable: the ledger failed; another iteration continues.
        """
        while True:
            yield from self.poll()
            self._clock.sleep(PAUSE)

    def _arrived(self, received: Received) -> Iterator[EventArrival]:
        if not self._query.names(received):
            return
        now = self._clock.now()
        overview = self._ledger.overview(received.source, received.event_id, now=now)
        # An expired event; its row is gone, and its entry of the index is about to go.
        if overview is None:
            return
        self._changes.watch(overview)
        if self._query.fits(overview):
            event = overview.event
            yield EventArrival(
                change="received",
                at=event.received_at,
                source=event.source,
                type=event.type,
                event_id=event.event_id,
                status=str(overview.status),
                handlers=tuple(
                    dict.fromkeys((*event.runs, *(run.handler for run in overview.runs)))
                ),
            )


def _change(run: Run) -> RunChange:
    return RunChange(
        change="run",
        at=run.last_at,
        source=run.source,
        type=run.type,
        event_id=run.event_id,
        status=str(run.status),
        handler=run.handler,
        attempt_count=run.attempt_count,
        reason=reason_of(run) or None,
        error_line=line_of(run) or None,
    )
