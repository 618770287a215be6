"""One page of the list of events."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime

from webhook_inbox.client.event_state import EventState
from webhook_inbox.client.times import iso
from webhookctl.console.filters import EventFilter
from webhookctl.console.inbox import ConsoleInbox
from webhookctl.display.event import run_notes


@dataclass(frozen=True, slots=True)
class EventRow:
    """An event in the list.

    Attributes:
        state: the event.
        notes: a line for each of its runs that is not done.
    """

    state: EventState
    notes: tuple[str, ...]

    @property
    def key(self) -> str:
        """Identifies the row among those of a page."""
        return f"{self.state.event.source}/{self.state.event.event_id}"


@dataclass(frozen=True, slots=True)
class EventRows:
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
    partly: bool


def page_of(inbox: ConsoleInbox, chosen: EventFilter) -> EventRows:
    """Returns the page; raises BadFilter for a filter that cannot be used."""
    now, wanted = inbox.clock.now(), chosen.text.casefold()

    def contains(state: EventState) -> bool:
        return any(wanted in text.casefold() for text in _texts(state, now))

    events = inbox.reading(None).events
    page = events.page(chosen.wanted(now), matches=contains)
    until = iso(page.older_than)
    return EventRows(
        tuple(EventRow(each, run_notes(each, now=now)) for each in page.events),
        replace(chosen, until=until) if until else None,
        page.searched_to,
        page.partial,
    )


def _texts(state: EventState, now: datetime) -> Iterator[str]:
    event = state.event
    yield from (event.event_id, event.type, event.source, event.tenant)
    yield from run_notes(state, now=now)
