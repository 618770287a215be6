"""The runs that a replay of the event list's filter selects, said before it is planned."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from webhook_inbox.client.replays import ReplayFilter
from webhook_inbox.client.search import ATTENDED
from webhook_inbox.client.times import moment
from webhook_inbox.domain.model import EventStatus
from webhookctl.console.filters import BadFilter, EventFilter

# The filters that the list and a replay have in common, by the list's names.
SHARED: Final = ("source", "type", "handler", "tenant", "since", "until")
# The list of events in other statuses begins so long before its end.
WINDOW: Final = "24h"
FINISHED: Final = (EventStatus.DONE, EventStatus.SKIPPED)


@dataclass(frozen=True, slots=True)
class ReplayScope:
    """The runs that a replay of a filter selects.

    Attributes:
        says: the runs that it selects, as a sentence.
        refused: why there is none, "" if there is one.
        repeats: whether the runs are finished.
        status: their status.
        values: the list's other filters, as the user wrote them.
    """

    says: str
    refused: str
    repeats: bool
    status: EventStatus
    values: Mapping[str, str]


def scope_of(chosen: EventFilter) -> ReplayScope:
    """Returns what a replay of the list's filter selects.

    The list filters events and a replay runs: an event is listed by its own status, which is that
    of its most urgent run.
    """
    status = EventStatus(chosen.status or EventStatus.DEAD_LETTER)
    values = {name: getattr(chosen, name) for name in SHARED if getattr(chosen, name)}
    since = chosen.since or ("" if chosen.status and status in ATTENDED else WINDOW)
    window = "" if since == chosen.since else " of the last 24 hours"
    says = f"Selects every run{window} in status {status.replace('_', ' ')}"
    says += " that meets the filters, also beyond this page"
    if not chosen.handler and status is not EventStatus.DEAD_LETTER:
        says += "; a run counts by its own status, whatever the other runs of its event have"
    refused = ""
    if chosen.text:
        refused = "a replay cannot select by the text filter: clear it"
    elif chosen.until and window:
        refused = "the list begins 24 hours before its end: set From as well"
    if since:
        values["since"] = since
    return ReplayScope(f"{says}.", refused, status in FINISHED, status, values)


def filter_of(form: Mapping[str, str], now: datetime) -> ReplayFilter:
    """Returns what a form selects: an event's run, a group, or the runs of the list's filter.

    Raises:
        BadFilter: a replay cannot select it.
    """
    handler = form.get("handler") or None
    if event_id := form.get("event_id", ""):
        source = form.get("source") or None
        return ReplayFilter(event_ids=(event_id,), source=source, handler=handler)
    if group := form.get("error_group"):
        return ReplayFilter(handler=handler, error_group=group)
    scope = scope_of(EventFilter.of(form))
    if scope.refused:
        raise BadFilter(scope.refused)
    values = dict(scope.values)
    since, until = (values.pop(name, None) for name in ("since", "until"))
    return ReplayFilter(
        status=(scope.status,),
        since=moment(since, now) if since else None,
        until=moment(until, now) if until else None,
        **values,
    )
