"""One page of events: bounded in rows and in time, and continued by a link.

A search for a rare status in a day of a million events would take minutes, so a page shows what it
found within its time, says how far it searched, and the next page continues there.
"""

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from math import inf
from time import monotonic
from typing import Final

from webhook_inbox.client.budget import Cut
from webhook_inbox.client.times import iso
from webhook_inbox.domain.model import Overview
from webhook_inbox.domain.timestamps import from_ms
from webhook_inbox.ledger.queries import Received
from webhook_inbox.ledger.schema import BY_RECEIVED, DEAD_FROM, RUN_LIFE
from webhookctl.console.filters import EventFilter
from webhookctl.console.inbox import ConsoleInbox
from webhookctl.display.event import run_notes
from webhookctl.search import ATTENDED, WORKERS, find

ROWS: Final = 50
SECONDS: Final = 0.6
# The part of it for the due index; the rest is for the events that it lists.
DUE_SECONDS: Final = 0.4
# A quiet inbox has a hundred empty partitions a day: over a network, they take longer.
RECEIVED_SECONDS: Final = 3.0
# The search reads the rows of so many events together; those behind may not be read yet.
AHEAD: Final = WORKERS + 1


@dataclass(frozen=True, slots=True)
class EventRow:
    """An event in the list; it has no body."""

    source: str
    event_id: str
    type: str
    tenant: str
    received_at: datetime
    status: str
    notes: tuple[str, ...]

    @property
    def key(self) -> str:
        """Identifies the row among those of a page."""
        return f"{self.source}/{self.event_id}"


@dataclass(frozen=True, slots=True)
class EventPage:
    """One page of the list.

    Attributes:
        rows: the events, newest first.
        older: the filter of the next page, None at the end.
        searched_to: the time down to which the search came; None if it is complete.
        partly: whether only a part of the waiting runs was searched, which have no order by time.
    """

    rows: tuple[EventRow, ...]
    older: EventFilter | None
    searched_to: datetime | None
    partly: bool = False


def page_of(inbox: ConsoleInbox, chosen: EventFilter) -> EventPage:
    """Returns the page; raises BadFilter for a filter that cannot be used.

    Reads at most ROWS + 1 events that match, for about SECONDS.
    """
    now, wanted = inbox.clock.now(), chosen.wanted(inbox.clock.now())
    place = _Place()
    table = inbox.bounded(DUE_SECONDS if wanted.status in ATTENDED else RECEIVED_SECONDS)
    rows: list[EventRow] = []
    try:
        for overview in find(table, wanted, now=now, passing=place.reached):
            row = _row(overview, now)
            if not _contains(row, chosen.text):
                continue
            if len(rows) == ROWS:
                return EventPage(tuple(rows), _from(chosen, row.received_at), None)
            rows.append(row)
    except _OutOfTimeError:
        at = min([place.before, *(row.received_at for row in rows[-1:])])
        return EventPage(tuple(rows), _from(chosen, at), at)
    if not table.cut:
        return EventPage(tuple(rows), None, None)
    reached = _reached(table.cuts)
    if reached is None:
        return EventPage(tuple(rows), None, None, partly=True)
    return EventPage(tuple(rows), _from(chosen, reached), reached)


def _reached(cuts: Sequence[Cut]) -> datetime | None:
    """Returns the time down to which all partitions were read; None where they have no such order.

    An event may be listed again on the next page, and none is left out.
    """
    if all(cut.name == BY_RECEIVED for cut in cuts):
        return max((_end_of_hour(cut.partition) for cut in cuts), default=None)
    last = [cut.last for cut in cuts if cut.last is not None]
    if len(last) < len(cuts) or min(last) < DEAD_FROM:
        return None
    return from_ms(max(last) - DEAD_FROM) - RUN_LIFE


def _end_of_hour(partition: str) -> datetime:
    hour = datetime.fromisoformat(f"{partition.partition('#')[0]}:00+00:00")
    return hour + timedelta(hours=1)


class _OutOfTimeError(Exception):
    """The page's time is over."""


class _Place:
    """Follows how far a search came, and ends it SECONDS after its first event."""

    def __init__(self) -> None:
        # A slow answer to the first query must not leave a page without any event.
        self._ends = inf
        self._recent: deque[datetime] = deque(maxlen=AHEAD)

    def reached(self, event: Received) -> None:
        """Notes the event that the search reads next; raises _OutOfTimeError."""
        if not self._recent:
            self._ends = monotonic() + SECONDS
        self._recent.append(event.received_at)
        if monotonic() > self._ends and len(self._recent) == AHEAD:
            raise _OutOfTimeError

    @property
    def before(self) -> datetime:
        """A time down to which all events were read."""
        return self._recent[0]


def _row(overview: Overview, now: datetime) -> EventRow:
    event = overview.event
    return EventRow(
        source=event.source,
        event_id=event.event_id,
        type=event.type,
        tenant=event.tenant,
        received_at=event.received_at,
        status=str(overview.status),
        notes=run_notes(overview, now=now),
    )


def _contains(row: EventRow, text: str) -> bool:
    wanted = text.casefold()
    return any(wanted in part.casefold() for part in _texts(row))


def _texts(row: EventRow) -> Iterator[str]:
    yield from (row.event_id, row.type, row.source, row.tenant, *row.notes)


def _from(chosen: EventFilter, last: datetime) -> EventFilter:
    """Returns the filter that continues with the last event read; `until` excludes its own time."""
    return replace(chosen, until=iso(last + timedelta(milliseconds=1)) or "")
