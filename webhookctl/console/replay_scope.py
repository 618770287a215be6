"""The runs that a replay of the event list's filter selects, said before it is planned."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from webhook_inbox.domain.model import EventStatus
from webhookctl.console.filters import BadFilter, EventFilter
from webhookctl.search import ATTENDED

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
        values: the parameters of `replay`.
    """

    says: str
    refused: str
    repeats: bool
    values: Mapping[str, Any]


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
    values["status"] = [status]
    return ReplayScope(f"{says}.", refused, status in FINISHED, _named(values))


def values_of(form: Mapping[str, str]) -> dict[str, Any]:
    """Returns the parameters of `replay` for a form: an event's run, a group, or the list's filter.

    Raises:
        BadFilter: a replay cannot select it.
    """
    if event_id := form.get("event_id", ""):
        named = {name: form[name] for name in ("source", "handler") if form.get(name)}
        return {**named, "event_ids": [event_id]}
    if form.get("error_group"):
        return {name: form[name] for name in ("handler", "error_group") if form.get(name)}
    scope = scope_of(EventFilter.of(form))
    if scope.refused:
        raise BadFilter(scope.refused)
    return dict(scope.values)


def _named(values: Mapping[str, Any]) -> dict[str, Any]:
    return {{"type": "type_"}.get(name, name): value for name, value in values.items()}
