"""One page of events: bounded in rows and in time, and continued by the next one.

A search for a rare status in a day of a million events would take minutes, so a page shows what it
found within its time, says how far it searched, and the next page continues there.
"""

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from math import inf
from time import monotonic
from typing import Final

from webhook_inbox.client.budget import BoundedTable, Cut
from webhook_inbox.client.event_state import EventState
from webhook_inbox.client.scope import Scope
from webhook_inbox.client.search import ATTENDED, WORKERS, EventQuery, find
from webhook_inbox.domain.timestamps import from_ms
from webhook_inbox.ledger.queries import Received
from webhook_inbox.ledger.schema import BY_RECEIVED, DEAD_FROM, RUN_LIFE

ROWS: Final = 50
SECONDS: Final = 0.6
# The part of it for the due index; the rest is for the events that it lists.
DUE_SECONDS: Final = 0.4
# A quiet inbox has a hundred empty partitions a day: over a network, they take longer.
RECEIVED_SECONDS: Final = 3.0
# The search reads the rows of so many events together; those behind may not be read yet.
AHEAD: Final = WORKERS + 1


@dataclass(frozen=True, slots=True)
class EventPage:
    """One page of the list.

    Attributes:
        events: the events, newest first.
        older_than: the `until` of the next page; None at the end.
        searched_to: the time down to which the search came; None if it is complete.
        partial: whether only a part of the waiting runs was searched, which have no order by time.
    """

    events: tuple[EventState, ...]
    older_than: datetime | None = None
    searched_to: datetime | None = None
    partial: bool = False


def read_page(
    scope: Scope, query: EventQuery, *, matches: Callable[[EventState], bool]
) -> EventPage:
    """Returns the page: at most ROWS events that match, for about SECONDS."""
    now, place = scope.clock.now(), _Place()
    seconds = DUE_SECONDS if query.status in ATTENDED else RECEIVED_SECONDS
    table = BoundedTable(scope.table, seconds=seconds)
    events: list[EventState] = []
    try:
        for overview in find(table, query, now=now, passing=place.reached):
            state = EventState.of(overview, now=now, program=scope.program)
            if not matches(state):
                continue
            if len(events) == ROWS:
                return EventPage(tuple(events), _behind(state.event.received_at))
            events.append(state)
    except _OutOfTimeError:
        at = min([place.before, *(each.event.received_at for each in events[-1:])])
        return EventPage(tuple(events), _behind(at), at)
    if not table.cut:
        return EventPage(tuple(events))
    reached = _reached(table.cuts)
    if reached is None:
        return EventPage(tuple(events), partial=True)
    return EventPage(tuple(events), _behind(reached), reached)


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


def _behind(last: datetime) -> datetime:
    """Returns the `until` that continues with the last event read; it excludes its own time."""
    return last + timedelta(milliseconds=1)
