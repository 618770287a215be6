"""Shows the actions of operators."""

from typing import Any, Final

from webhook_inbox.client.audit import REPLAY_DEFAULTS
from webhook_inbox.client.times import iso
from webhook_inbox.domain.audit import AuditedAction, AuditEntry
from webhook_inbox.domain.printable import counted
from webhookctl.display.history import action_object
from webhookctl.display.json_object import json_object

UNFINISHED: Final = "not finished"
# The subject of an action that is not about events: the first of these in its request.
SUBJECTS: Final = ("secret", "destination", "handler", "tenant", "source")


@json_object.register
def _(entry: AuditEntry) -> dict[str, Any]:
    about = {"request": dict(entry.request), "event_ids": list(entry.event_ids)}
    return {"at": iso(entry.at), **action_object(entry), **about}


def audit_row(entry: AuditEntry) -> tuple[object, ...]:
    """Returns the cells of an action in a table."""
    action = f"{entry.action}, forced" if entry.forced else entry.action
    stopped = f"stopped: {entry.stopped}" if entry.stopped else ""
    details = (f"by {entry.actor}", entry.reason, stopped, request_text(entry))
    return entry.at, action, _about(entry), result_text(entry), tuple(filter(None, details))


def request_text(entry: AuditEntry) -> str:
    """Returns the fields of the request that were chosen: `handler acme.fulfil, new keys`."""
    chosen = [each for each in entry.request.items() if _is_chosen(*each)]
    return ", ".join(_words(name, value) for name, value in chosen)


def _is_chosen(name: str, value: str) -> bool:
    """Returns whether the request differs from what it is without this field."""
    return value not in {"", "False"} and REPLAY_DEFAULTS.get(name) != value


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


def result_text(entry: AuditEntry) -> str:
    """Returns the counts of the outcomes: `3 replayed, stopped`."""
    if entry.counts is None:
        return UNFINISHED
    if entry.action == AuditedAction.SHOW_PERSONAL:
        return "shown"
    counts = [f"{count} {name.replace('_', ' ')}" for name, count in entry.counts.items()]
    return ", ".join([*counts, *(["stopped"] if entry.stopped else [])]) or "nothing"
