"""Formats events as JSON, and in short for a table."""

import base64
from datetime import datetime
from typing import Any, Final

from webhook_inbox.client.body_search import BodyMatch
from webhook_inbox.client.event_state import EventAttempt, EventRun, EventState
from webhook_inbox.client.exporting import ExportedEvent
from webhook_inbox.client.times import iso, relative
from webhook_inbox.domain.model import Run, Status
from webhookctl.display.generated_curl import sent_headers
from webhookctl.display.history import history_objects
from webhookctl.display.json_object import json_object
from webhookctl.display.runs import approvals_object, effect_object, request_object, wait_object

# The statuses in which `next_attempt_at` is the run's own next step.
WAITING: Final = frozenset({Status.FAILED, Status.DEFERRED})


@json_object.register
def event_object(state: EventState) -> dict[str, Any]:
    """Returns an event as JSON data, without its body; absent values are null."""
    event = state.event
    return {
        "source": event.source,
        "event_id": event.event_id,
        "type": event.type,
        "agent": event.agent or None,
        **({"tenant": event.tenant} if event.tenant else {}),
        **({"identical_to": event.identical_to} if event.identical_to else {}),
        **({"dropped": event.dropped} if event.dropped else {}),
        **({"doubt": event.doubt} if event.doubt else {}),
        "received_at": iso(event.received_at),
        **({"erased_at": iso(event.erased_at)} if event.erased_at else {}),
        "status": str(state.status),
        "fingerprint": event.fingerprint,
        "next_action": " ".join(state.next_action),
        "runs": [_run_object(each) for each in state.runs],
        "history": history_objects(state),
    }


@json_object.register
def match_object(match: BodyMatch) -> dict[str, Any]:
    """Returns an event that a search found as JSON data, without the value in its body."""
    event = match.event
    about = {"source": event.source, "event_id": event.event_id, "type": event.type}
    return {**about, "received_at": iso(event.received_at)}


def export_object(exported: ExportedEvent) -> dict[str, Any]:
    """Returns an event as it is exported: with its headers and its body, unless that is missing."""
    if exported.missing:
        return {**event_object(exported.state), "body_missing": exported.missing}
    event = exported.state.event
    headers = sent_headers(event.headers)
    return {**event_object(exported.state), "headers": headers, **body_object(event.body)}


def body_object(body: bytes) -> dict[str, str]:
    """Returns a body as JSON data: text where it is UTF-8, otherwise base64."""
    try:
        return {"body": body.decode()}
    except UnicodeDecodeError:
        return {"body_base64": base64.b64encode(body).decode()}


def run_notes(state: EventState, *, now: datetime) -> tuple[str, ...]:
    """Returns a line for each run that is not done: its next attempt, and why it waits or ended."""
    if why := state.without_runs:
        return (why,)
    runs = sorted(state.runs, key=lambda each: each.handler)
    notes = (_note(state, each, each.run, now) for each in runs if each.run is not None)
    return tuple(filter(None, notes))


def _note(state: EventState, each: EventRun, run: Run, now: datetime) -> str:
    """Returns `stripe.book: attempt 3 in 20 s: KeyError: 'id' (functions/handlers/book.py:12)`."""
    if run.status is Status.DONE:
        return ""
    # The table has the event's status already.
    status = "" if str(run.status) == str(state.status) else str(run.status)
    # A paused run has a time for its next look at the pause, which is no attempt.
    due = run.next_attempt_at if run.status in WAITING and not each.paused else None
    again = f"attempt {run.attempt_count + 1} {relative(due, now)}" if due else _at_work(run, now)
    line = each.error_line
    why = " ".join(filter(None, (each.reason, line and f"({line})")))
    told = ": ".join(filter(None, (", ".join(filter(None, (status, again))), why)))
    return f"{run.handler}: {told}" if told else ""


def _at_work(run: Run, now: datetime) -> str:
    """Returns `attempt 2, ends in 40 s at the latest` for a run in progress, "" for any other."""
    if run.status is not Status.PROCESSING or run.claimed_until is None:
        return ""
    if run.claimed_until <= now:
        return f"attempt {run.attempt_count}, lease expired {relative(run.claimed_until, now)}"
    return f"attempt {run.attempt_count}, ends {relative(run.claimed_until, now)} at the latest"


def _run_object(each: EventRun) -> dict[str, Any]:
    run = each.run
    return {
        "handler": each.handler,
        "status": each.status,
        "attempt_count": run.attempt_count if run else 0,
        "generation": run.generation if run else 0,
        "claimed_by": each.worker or None,
        "claimed_until": iso(run.claimed_until if run else None),
        "next_attempt_at": iso(run.next_attempt_at if run else None),
        "done_at": iso(run.done_at if run else None),
        "last_error": each.error or None,
        "attempts": [_attempt_object(attempt) for attempt in each.attempts],
        "effects": [effect_object(effect) for effect in each.effects],
        **({} if run is None else _special(each, run)),
        **({"waits": [wait_object(wait) for wait in each.waits]} if each.waits else {}),
    }


def _special(each: EventRun, run: Run) -> dict[str, Any]:
    """Returns the fields that only some runs have."""
    hold, items = each.hold, each.items
    return {
        **({"error_line": each.error_line} if each.error_line else {}),
        **({"items": {**items.counts, "of": items.of}} if items else {}),
        **({"waits_for": run.waits_for} if run.waits_for else {}),
        **({"skip_reason": run.skip_reason} if run.skip_reason else {}),
        **({"added": True} if run.added else {}),
        **({"held": request_object(hold)} if hold else {}),
        **({"approvals": approvals_object(each.approvals)} if each.approvals else {}),
    }


def _attempt_object(each: EventAttempt) -> dict[str, Any]:
    attempt = each.attempt
    return {
        "number": attempt.number,
        "started_at": iso(attempt.started_at),
        "ended_at": iso(attempt.ended_at),
        "outcome": attempt.outcome,
        "error": attempt.error or None,
        "worker": attempt.worker or None,
        **(json_object(each.evidence) or {}),
    }
