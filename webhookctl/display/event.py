"""Formats events as JSON, and in short for a table."""

import base64
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from webhook_inbox.client.holds import HeldRun
from webhook_inbox.client.suggestions import PLAIN, Program
from webhook_inbox.client.times import iso, relative
from webhook_inbox.domain.model import Attempt, EventStatus, Overview, Run, Status
from webhook_inbox.ledger.pauses import RESUMPTIONS
from webhook_inbox.ledger.schema import EVENT_LIFE
from webhookctl.display.evidence import Logs, attempt_evidence
from webhookctl.display.history import attempts_of, history_objects
from webhookctl.display.runs import approvals, effect_object, request_object, wait_object, waits_of
from webhookctl.explain.effects import effects_of
from webhookctl.explain.next_action import Steps, next_steps, without_runs
from webhookctl.explain.reason import error_of, line_of, reason_of

Limits = Mapping[str, int]
# The statuses in which `next_attempt_at` is the run's own next step.
WAITING: Final = frozenset({Status.FAILED, Status.DEFERRED})


def event_object(
    overview: Overview,
    *,
    now: datetime,
    limits: Limits | None = None,
    logs: Logs | None = None,
    program: Program = PLAIN,
) -> dict[str, Any]:
    """Returns an event as JSON data, without its body; absent values are null.

    With `logs`, each attempt has what it can be looked up by.
    """
    event = overview.event
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
        "status": str(overview.status),
        "fingerprint": event.fingerprint,
        "next_action": " ".join(advice(overview, now=now, limits=limits, program=program)),
        "runs": [_run_object(overview, name, now, logs) for name in names_of(overview)],
        "history": history_objects(overview),
    }


def advice(
    overview: Overview, *, now: datetime, limits: Limits | None = None, program: Program = PLAIN
) -> Steps:
    """Returns the next action for an event; it may expire before its runs."""
    if overview.event.received_at + EVENT_LIFE <= now:
        gone = "the event has expired, its runs end with it."
        return (f"Ask the provider to send it again: {gone}",)
    return next_steps(overview, now=now, max_attempts=limits, program=program)


def body_object(body: bytes) -> dict[str, str]:
    """Returns a body as JSON data: text where it is UTF-8, otherwise base64."""
    try:
        return {"body": body.decode()}
    except UnicodeDecodeError:
        return {"body_base64": base64.b64encode(body).decode()}


def run_notes(overview: Overview, *, now: datetime) -> tuple[str, ...]:
    """Returns a line for each run that is not done: its next attempt, and why it waits or ended."""
    if why := without_runs(overview):
        return (why,)
    notes = (_note(overview, run, now) for run in overview.runs if run.status is not Status.DONE)
    return tuple(filter(None, notes))


def _note(overview: Overview, run: Run, now: datetime) -> str:
    """Returns `stripe.book: attempt 3 in 20 s: KeyError: 'id' (functions/handlers/book.py:12)`."""
    # The table has the event's status already.
    status = "" if str(run.status) == str(overview.status) else str(run.status)
    # A paused run has a time for its next look at the pause, which is no attempt.
    paused = run.waits_for in RESUMPTIONS
    due = run.next_attempt_at if run.status in WAITING and not paused else None
    again = f"attempt {run.attempt_count + 1} {relative(due, now)}" if due else _at_work(run, now)
    line = line_of(run)
    why = " ".join(filter(None, (reason_of(run), line and f"({line})")))
    told = ": ".join(filter(None, (", ".join(filter(None, (status, again))), why)))
    return f"{run.handler}: {told}" if told else ""


def _at_work(run: Run, now: datetime) -> str:
    """Returns `attempt 2, ends in 40 s at the latest` for a run in progress, "" for any other."""
    if run.status is not Status.PROCESSING or run.claimed_until is None:
        return ""
    if run.claimed_until <= now:
        return f"attempt {run.attempt_count}, lease expired {relative(run.claimed_until, now)}"
    return f"attempt {run.attempt_count}, ends {relative(run.claimed_until, now)} at the latest"


def names_of(overview: Overview) -> list[str]:
    """Returns an event's handlers: the original ones, then those that a replay added."""
    return list(dict.fromkeys((*overview.event.runs, *(run.handler for run in overview.runs))))


def _worker(run: Run) -> str:
    """Returns the worker that has leased a run, or that leased it last."""
    return run.claimed_by or (run.attempts[-1].worker if run.attempts else "")


def _run_object(overview: Overview, name: str, now: datetime, logs: Logs | None) -> dict[str, Any]:
    run = next((run for run in overview.runs if run.handler == name), None)
    attempts = (
        []
        if run is None
        else [
            _attempt_object(each)
            | (attempt_evidence(logs, overview.event, run, each) if logs is not None else {})
            for each in attempts_of(run)
        ]
    )
    return {
        "handler": name,
        "status": str(run.status if run else EventStatus.ACCEPTED),
        "attempt_count": run.attempt_count if run else 0,
        "generation": run.generation if run else 0,
        "claimed_by": _worker(run) or None if run else None,
        "claimed_until": iso(run.claimed_until if run else None),
        "next_attempt_at": iso(run.next_attempt_at if run else None),
        "done_at": iso(run.done_at if run else None),
        "last_error": error_of(run) or None if run else None,
        "attempts": attempts,
        "effects": [effect_object(effect) for effect in effects_of(overview, name, now=now)],
        **({} if run is None else _special(run)),
        **({"waits": waits} if (waits := [*map(wait_object, waits_of(overview, name))]) else {}),
    }


def _special(run: Run) -> dict[str, Any]:
    """Returns the fields that only some runs have."""
    return {
        **({"error_line": line} if (line := line_of(run)) else {}),
        **({"items": _items(run)} if run.progress else {}),
        **({"waits_for": run.waits_for} if run.waits_for else {}),
        **({"skip_reason": run.skip_reason} if run.skip_reason else {}),
        **({"added": True} if run.added else {}),
        **({"held": request_object(HeldRun.of(run))} if run.status is Status.HELD else {}),
        **({"approvals": approvals(run)} if run.approvals else {}),
    }


def _items(run: Run) -> dict[str, Any]:
    """Returns the numbers of a batch's items by outcome, and in total."""
    return {**run.progress["counts"], "of": run.progress["of"]}


def _attempt_object(attempt: Attempt) -> dict[str, Any]:
    return {
        "number": attempt.number,
        "started_at": iso(attempt.started_at),
        "ended_at": iso(attempt.ended_at),
        "outcome": attempt.outcome,
        "error": attempt.error or None,
        "worker": attempt.worker or None,
    }
