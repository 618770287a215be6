"""An event's history: attempts, replays and operator actions in the order of their times."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from webhook_inbox.client.times import iso
from webhook_inbox.domain.audit import Actor, AuditedAction, AuditEntry
from webhook_inbox.domain.model import Attempt, Overview, Run, Status
from webhook_inbox.domain.ports import Key
from webhook_inbox.domain.timestamps import from_ms
from webhook_inbox.ledger.audit import read_entry
from webhook_inbox.ledger.schema import key_of_run
from webhook_inbox.ledger.settle import with_lost

Happening = Attempt | AuditEntry


def attempts_of(run: Run) -> tuple[Attempt, ...]:
    """Returns a run's attempts, including lost ones before the attempt in progress."""
    if run.status is not Status.PROCESSING or run.claimed_at is None:
        return run.attempts
    return with_lost(run, before=run.attempt_count, noticed_at=run.claimed_at)


def history_of(overview: Overview, handler: str = "") -> list[Happening]:
    """Returns what happened to a handler's run, or without one to the event itself."""
    actions = [read_entry(dict(row)) for row in overview.actions]
    found: list[Happening] = [
        each for each in actions if each.request.get("handler", "") == handler
    ]
    for run in overview.runs:
        if run.handler == handler:
            found += [_replayed(run, replay) for replay in run.replays]
            found += attempts_of(run)
    return sorted(found, key=_at)


def history_objects(overview: Overview) -> list[dict[str, Any]]:
    """Returns the history of an event and of all its runs as JSON data."""
    handlers = {run.handler for run in overview.runs}
    named = {row["request"].get("handler", "") for row in overview.actions}
    told = [
        (_at(each), handler, each)
        for handler in sorted(handlers | named | {""})
        for each in history_of(overview, handler)
    ]
    return [
        {"at": iso(at), "handler": handler or None, **_object(each)}
        for at, handler, each in sorted(told, key=lambda entry: entry[0])
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


def _replayed(run: Run, replay: Mapping[str, Any]) -> AuditEntry:
    return AuditEntry(
        key=Key(*key_of_run(run)),
        at=from_ms(replay["at"]),
        action=AuditedAction.REPLAY,
        actor=Actor.of(replay),
        reason=replay.get("reason", ""),
        forced=replay.get("forced", False),
        counts={},
    )


def _object(each: Happening) -> dict[str, Any]:
    if isinstance(each, AuditEntry):
        return {"kind": "action", **action_object(each)}
    told = {"number": each.number, "outcome": each.outcome, "error": each.error or None}
    return {"kind": "attempt", **told}


def _at(each: Happening) -> datetime:
    return each.at if isinstance(each, AuditEntry) else each.started_at
