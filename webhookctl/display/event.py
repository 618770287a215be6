"""Formats events as JSON and text."""

import base64
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from webhook_inbox.domain.model import Attempt, EventStatus, Overview, Run, Status
from webhook_inbox.domain.timestamps import from_ms
from webhook_inbox.ledger.pauses import RESUMPTION
from webhook_inbox.ledger.schema import EVENT_LIFE
from webhook_inbox.ledger.settle import with_lost
from webhookctl.display.output import GAP, Output
from webhookctl.display.runs import (
    approval_line,
    approvals,
    effect_line,
    effect_object,
    hold_lines,
    hold_object,
    wait_line,
    wait_object,
    waits_of,
)
from webhookctl.display.suggestions import PLAIN, Program
from webhookctl.display.times import iso, relative, span
from webhookctl.explain.effects import effects_of
from webhookctl.explain.next_action import next_action

Limits = Mapping[str, int]


def event_object(
    overview: Overview, *, now: datetime, limits: Limits | None = None
) -> dict[str, Any]:
    """Returns an event as JSON data, without its body; absent values are null."""
    event = overview.event
    return {
        "source": event.source,
        "event_id": event.event_id,
        "type": event.type,
        "agent": event.agent or None,
        **({"identical_to": event.identical_to} if event.identical_to else {}),
        "received_at": iso(event.received_at),
        "status": str(overview.status),
        "fingerprint": event.fingerprint,
        "next_action": advice(overview, now=now, limits=limits),
        "runs": [_run_object(overview, name, now) for name in _names(overview)],
    }


def advice(
    overview: Overview, *, now: datetime, limits: Limits | None = None, program: Program = PLAIN
) -> str:
    """Returns the next action for an event; it may expire before its runs."""
    if overview.event.received_at + EVENT_LIFE <= now:
        return "Ask the provider to send it again: the event has expired, its runs end with it."
    return next_action(overview, now=now, max_attempts=limits, program=program)


def body_object(body: bytes) -> dict[str, str]:
    """Returns a body as JSON data: text where it is UTF-8, otherwise base64."""
    try:
        return {"body": body.decode()}
    except UnicodeDecodeError:
        return {"body_base64": base64.b64encode(body).decode()}


def runs_in_short(overview: Overview) -> str:
    """Returns `github.count done, github.announce failed`."""
    statuses = {run.handler: str(run.status) for run in overview.runs}
    names = _names(overview)
    return ", ".join(f"{n} {statuses.get(n, EventStatus.ACCEPTED)}" for n in names)


def print_event(
    output: Output, overview: Overview, *, provider: str, now: datetime, words: str
) -> None:
    """Prints an event with its runs, and the next action."""
    event = overview.event
    output.fields(
        {
            "event_id": event.event_id,
            "source": event.source,
            "provider": provider,
            "type": event.type,
            **({"agent": event.agent} if event.agent else {}),
            **({"identical_to": event.identical_to} if event.identical_to else {}),
            "dedupe_key": event.event_id,
            "received_at": _told(event.received_at, now),
            "status": overview.status,
            "fingerprint": event.fingerprint,
            "next_action": words,
        }
    )
    by_name = {run.handler: run for run in overview.runs}
    for name in _names(overview):
        output.line()
        output.line(f"run {name}")
        if name in by_name:
            _print_run(output, overview, by_name[name], now)
        else:
            output.fields({"status": EventStatus.ACCEPTED, "attempt_count": 0}, indent=GAP)


def _print_run(output: Output, overview: Overview, run: Run, now: datetime) -> None:
    output.fields(
        {
            "status": run.status,
            "attempt_count": run.attempt_count,
            "generation": run.generation,
            "claimed_by": run.claimed_by,
            "claimed_until": _lease(run.claimed_until, now),
            "next_attempt_at": _told(run.next_attempt_at, now),
            **({"waits_for": _awaited(run)} if run.waits_for else {}),
            "done_at": _told(run.done_at, now),
            **({"items": _items_told(run)} if run.progress else {}),
            "last_error": run.last_error,
        },
        indent=GAP,
    )
    _print_list(output, "attempts", map(_attempt_line, _attempts(run)))
    _print_list(output, "held", hold_lines(run))
    _print_list(output, "approvals", map(approval_line, approvals(run).items()))
    _print_list(output, "effects", map(effect_line, effects_of(overview, run.handler, now=now)))
    _print_list(output, "waits", map(wait_line, waits_of(overview, run.handler)))
    _print_list(output, "replays", map(_replay_line, run.replays))


def _awaited(run: Run) -> str:
    """Returns `resumption of handler stripe.fulfil`, `destination crm: its circuit is open`."""
    if run.waits_for == RESUMPTION:
        return f"{RESUMPTION} of handler {run.handler}"
    return f"{run.waits_for}: {run.last_error}" if run.last_error else run.waits_for


def _print_list(output: Output, title: str, lines: Iterator[str]) -> None:
    shown = list(lines)
    if shown:
        output.line(f"{GAP}{title}")
    for line in shown:
        output.line(f"{GAP}{GAP}{line}")


def _names(overview: Overview) -> list[str]:
    """Returns an event's handlers: the original ones, then those that a replay added."""
    return list(dict.fromkeys((*overview.event.runs, *(run.handler for run in overview.runs))))


def _run_object(overview: Overview, name: str, now: datetime) -> dict[str, Any]:
    run = next((run for run in overview.runs if run.handler == name), None)
    return {
        "handler": name,
        "status": str(run.status if run else EventStatus.ACCEPTED),
        "attempt_count": run.attempt_count if run else 0,
        "generation": run.generation if run else 0,
        "claimed_by": run.claimed_by or None if run else None,
        "claimed_until": iso(run.claimed_until if run else None),
        "next_attempt_at": iso(run.next_attempt_at if run else None),
        "done_at": iso(run.done_at if run else None),
        "last_error": run.last_error or None if run else None,
        "attempts": [_attempt_object(attempt) for attempt in (_attempts(run) if run else ())],
        "effects": [effect_object(effect) for effect in effects_of(overview, name, now=now)],
        **({} if run is None else _special(run)),
        **({"waits": waits} if (waits := [*map(wait_object, waits_of(overview, name))]) else {}),
    }


def _special(run: Run) -> dict[str, Any]:
    """Returns the fields that only some runs have."""
    return {
        **({"items": _items(run)} if run.progress else {}),
        **({"waits_for": run.waits_for} if run.waits_for else {}),
        **({"held": hold_object(run)} if run.status is Status.HELD else {}),
        **({"approvals": approvals(run)} if run.approvals else {}),
    }


def _items(run: Run) -> dict[str, Any]:
    """Returns the numbers of a batch's items by outcome, and in total."""
    return {**run.progress["counts"], "of": run.progress["of"]}


def _items_told(run: Run) -> str:
    """Returns `9 accepted, 1 ignored, of 12`."""
    counts = ", ".join(f"{count} {outcome}" for outcome, count in run.progress["counts"].items())
    return f"{counts}, of {run.progress['of']}"


def _attempt_object(attempt: Attempt) -> dict[str, Any]:
    return {
        "number": attempt.number,
        "started_at": iso(attempt.started_at),
        "ended_at": iso(attempt.ended_at),
        "outcome": attempt.outcome,
        "error": attempt.error or None,
        "worker": attempt.worker or None,
    }


def _told(value: datetime | None, now: datetime) -> str | None:
    return None if value is None else f"{iso(value)} ({relative(value, now)})"


def _lease(until: datetime | None, now: datetime) -> str | None:
    if until is None:
        return None
    words = f"in {span(until - now)}" if until > now else f"expired {span(now - until)} ago"
    return f"{iso(until)} ({words})"


def _attempt_line(attempt: Attempt) -> str:
    took = (attempt.ended_at - attempt.started_at).total_seconds()
    told = f"{attempt.number}  {iso(attempt.started_at)}  {took:.3f}s  {attempt.outcome}"
    worker = f"  by {attempt.worker}" if attempt.worker else ""
    return f"{told}{worker}" + (f"  {attempt.error}" if attempt.error else "")


def _replay_line(replay: Mapping[str, Any]) -> str:
    by, reason = replay.get("by") or "unknown", replay.get("reason")
    return f"{iso(from_ms(replay['at']))}  by {by}" + (f": {reason}" if reason else "")


def _attempts(run: Run) -> tuple[Attempt, ...]:
    """Returns a run's attempts, including lost ones before the attempt in progress."""
    if run.status is not Status.PROCESSING or run.claimed_at is None:
        return run.attempts
    return with_lost(run, before=run.attempt_count, noticed_at=run.claimed_at)
