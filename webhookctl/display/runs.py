"""The effects, waits and approvals of a run, as JSON objects and as lines."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from typing import Any, Final

from webhook_inbox.client.effects import RunEffect, RunWait
from webhook_inbox.client.event_state import RunApproval
from webhook_inbox.client.holds import DecidedHold, HeldRun, HoldDecision, PeopleDecisions
from webhook_inbox.client.times import iso
from webhook_inbox.domain.printable import cut
from webhookctl.display.json_object import json_object
from webhookctl.display.table import GAP

# Characters of a result in a line; JSON has all of it.
RESULT_SHOWN: Final = 120


def effect_object(effect: RunEffect) -> dict[str, Any]:
    """Returns an effect as JSON data; absent values are null."""
    return {
        "name": effect.name,
        "state": str(effect.state),
        "key": effect.key,
        "attempt": effect.attempt,
        "started_at": iso(effect.started_at),
        "committed_at": iso(effect.committed_at),
        "failed_at": iso(effect.failed_at),
        "key_honoured_until": iso(effect.key_ends),
        "in_doubt": effect.in_doubt,
        "in_doubt_since": iso(effect.doubtful_since),
        "error": effect.error or effect.unrecorded,
        "result": effect.result,
        "shared": effect.shared,
        "found_by": effect.found_by,
        "told_by": effect.told_by,
        "reason": effect.reason,
    }


def effect_line(effect: RunEffect) -> str:
    """Returns an effect as one line."""
    recorded = effect.committed_at and not effect.unrecorded
    return _line(
        effect.name,
        str(effect.state),
        {
            "key": effect.key,
            "shared": effect.shared,
            "attempt": effect.attempt,
            "started": iso(effect.started_at),
            "committed": iso(effect.committed_at),
            "failed": iso(effect.failed_at),
            "since": iso(effect.doubtful_since),
            "by": effect.told_by,
            "because": effect.reason,
            "error": effect.error or effect.unrecorded,
            "result": _result(effect.result) if recorded else None,
        },
    )


def wait_object(wait: RunWait) -> dict[str, Any]:
    """Returns a wait as JSON data, without its tokens; absent values are null."""
    return {
        "name": wait.name,
        "status": wait.status,
        "job": wait.number,
        "since": iso(wait.since),
        "until": iso(wait.until),
        "ended_at": iso(wait.ended_at),
        "ended_by": wait.ended_by,
        "late": wait.late,
        "error": wait.error,
        "result": wait.result,
    }


def wait_line(wait: RunWait) -> str:
    """Returns a wait as one line."""
    return _line(
        wait.name,
        wait.status,
        {
            "job": wait.number,
            "since": iso(wait.since),
            "until": iso(wait.until),
            "ended": iso(wait.ended_at),
            "by": wait.ended_by,
            "error": wait.error,
            "result": None if wait.stored_result is None else _result(wait.result),
        },
    )


@json_object.register
def _hold_object(hold: HeldRun) -> dict[str, Any]:
    """Returns a held run as JSON data; what only some have is left out."""
    people = {} if hold.people is None else {"people": json_object(hold.people)}
    about = {"event_id": hold.event_id, "handler": hold.handler, "type": hold.type}
    return {"source": hold.source, **about, **request_object(hold), **people}


@json_object.register(HoldDecision | DecidedHold)
def _(decision: HoldDecision | DecidedHold) -> dict[str, Any]:
    """Returns a decision as JSON data: the held run's, and the outcome."""
    _, *others = fields(decision)
    result = {each.name: json_object(getattr(decision, each.name)) for each in others}
    return {**json_object(decision.hold), **result}


def request_object(hold: HeldRun) -> dict[str, Any]:
    """Returns the request of a held run as JSON data."""
    return {
        "hold": hold.hold,
        "subject": hold.subject,
        "reason": hold.reason,
        "shows": hold.shows,
        "fingerprint": hold.fingerprint,
        "held_at": iso(hold.held_at),
        **({"identical_to": hold.identical_to} if hold.identical_to else {}),
        **({"unannounced": dict(hold.unannounced)} if hold.unannounced else {}),
    }


def people_line(people: PeopleDecisions) -> str:
    """Returns what the people of a group have decided as one line."""
    count, names = len(people.approved_by), ", ".join(people.approved_by)
    approved = f"{count} of {people.count} approved{f' ({names})' if names else ''}"
    return f"{approved}; expires {iso(people.expires_at)}"


def unannounced_lines(hold: HeldRun) -> Iterator[str]:
    """Yields a line for each person who is asked and was not told."""
    for person, why in hold.unannounced.items():
        yield f"{person} was not told, and is tried again: {why}"


def hold_lines(hold: HeldRun | None) -> Iterator[str]:
    """Yields a run's approval request as lines; nothing where it is not held."""
    if hold is not None:
        yield f"{hold.hold}  {hold.subject}  since {iso(hold.held_at)}  {hold.reason}"
        if hold.shows:
            yield f"shows {hold.shows}"
        yield from unannounced_lines(hold)


def approvals_object(approvals: Sequence[RunApproval]) -> dict[str, Any]:
    """Returns a run's approvals by subject as JSON data."""
    return {
        each.subject: {"by": each.by, "reason": each.reason, "at": iso(each.at)}
        for each in approvals
    }


def approval_line(each: RunApproval) -> str:
    """Returns an approval as one line."""
    return f"{iso(each.at)}  {each.subject} by {each.by}: {each.reason}"


def _line(name: str, state: str, values: Mapping[str, object]) -> str:
    named = (f"{label} {value}" for label, value in values.items() if value is not None)
    return GAP.join((name, state, *named))


def _result(value: Any) -> str:
    return cut(json.dumps(value, ensure_ascii=False), RESULT_SHOWN)
