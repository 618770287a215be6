"""Shows an event's history: attempts, replays and operator actions in the order of their times."""

from typing import Any

from webhook_inbox.client.event_state import EventState
from webhook_inbox.client.history import Happening, time_of
from webhook_inbox.client.times import iso
from webhook_inbox.domain.audit import AuditEntry


def history_objects(state: EventState) -> list[dict[str, Any]]:
    """Returns the history of an event and of all its runs as JSON data."""
    found = [
        (handler, each) for handler in sorted(state.history) for each in state.history[handler]
    ]
    return [
        {"at": iso(time_of(each)), "handler": handler or None, **_object(each)}
        for handler, each in sorted(found, key=lambda entry: time_of(entry[1]))
    ]


def action_object(entry: AuditEntry) -> dict[str, Any]:
    """Returns an operator's action as JSON data; `counts` is null for one not finished."""
    actor = entry.actor
    return {
        "action": entry.action,
        "by": actor.name,
        "proof": str(actor.proof),
        "on_behalf_of": actor.on_behalf_of or None,
        "request_id": actor.request_id or None,
        "reason": entry.reason or None,
        "forced": entry.forced,
        "counts": None if entry.counts is None else dict(entry.counts),
        "stopped": entry.stopped or None,
    }


def action_line(entry: AuditEntry) -> str:
    """Returns an operator's action as one line, without its time."""
    reason = f": {entry.reason}" if entry.reason else ""
    forced = ", forced" if entry.forced else ""
    unfinished = " (not finished)" if entry.counts is None else ""
    return f"{entry.action}{forced} by {entry.actor}{reason}{unfinished}"


def _object(each: Happening) -> dict[str, Any]:
    if isinstance(each, AuditEntry):
        return {"kind": "action", **action_object(each)}
    told = {"number": each.number, "outcome": each.outcome, "error": each.error or None}
    return {"kind": "attempt", **told}
