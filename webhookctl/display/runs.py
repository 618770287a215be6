"""The effects, waits and approvals of a run, as JSON objects and as lines."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import fields
from typing import Any, Final

from webhook_inbox.client.holds import DecidedHold, HeldRun, HoldDecision, PeopleDecisions
from webhook_inbox.client.times import iso
from webhook_inbox.domain.model import Overview, Run, Status
from webhook_inbox.domain.printable import cut
from webhook_inbox.domain.timestamps import from_ms
from webhook_inbox.handlers.effects.journal import decode
from webhook_inbox.ledger.schema import WAIT_PREFIX
from webhookctl.display.json_object import json_object
from webhookctl.display.table import GAP
from webhookctl.explain.effects import Effect

# Characters of a result in a line; JSON has all of it.
RESULT_SHOWN: Final = 120
_EFFECT_TIMES: Final = ("started_at", "committed_at", "failed_at")


def effect_object(effect: Effect) -> dict[str, Any]:
    """Returns an effect as JSON data; absent values are null."""
    row, word = effect.row, effect.row.get("word", {})
    result = None if "result" not in row or effect.unrecorded else decode(row["result"])
    return {
        "name": effect.name,
        "state": str(effect.standing),
        "key": row.get("idempotency_key"),
        "attempt": row.get("attempt"),
        **{name: iso(from_ms(row[name])) if name in row else None for name in _EFFECT_TIMES},
        "key_honoured_until": iso(effect.key_ends),
        "in_doubt": row.get("in_doubt"),
        "in_doubt_since": iso(effect.doubtful_since),
        "error": row.get("error") or row.get("unrecorded"),
        "result": result,
        "shared": row.get("shared"),
        "found_by": row.get("found_by"),
        "told_by": word.get("by"),
        "reason": word.get("reason"),
    }


def effect_line(effect: Effect) -> str:
    """Returns an effect as one line."""
    shown = effect_object(effect)
    recorded = shown["committed_at"] and not effect.unrecorded
    return _line(
        effect.name,
        str(effect.standing),
        {
            "key": shown["key"],
            "shared": shown["shared"],
            "attempt": shown["attempt"],
            "started": shown["started_at"],
            "committed": shown["committed_at"],
            "failed": shown["failed_at"],
            "since": shown["in_doubt_since"],
            "by": shown["told_by"],
            "because": shown["reason"],
            "error": shown["error"],
            "result": _result(shown["result"]) if recorded else None,
        },
    )


def waits_of(overview: Overview, handler: str) -> Iterator[Mapping[str, Any]]:
    """Yields the rows of a handler's waits."""
    prefix = f"{WAIT_PREFIX}{handler}#"
    return (row for row in overview.waits if row["sk"].startswith(prefix))


def wait_object(row: Mapping[str, Any]) -> dict[str, Any]:
    """Returns a wait as JSON data, without its tokens; absent values are null."""
    ended = iso(from_ms(row["ended_at"])) if "ended_at" in row else None
    return {
        "name": row["name"],
        "status": row["status"],
        "job": row["number"],
        "since": iso(from_ms(row["since"])),
        "until": iso(from_ms(row["until"])),
        "ended_at": ended,
        "ended_by": row.get("ended_by"),
        "late": row.get("late", False),
        "error": row.get("error"),
        "result": decode(row["result"]) if "result" in row else None,
    }


def wait_line(row: Mapping[str, Any]) -> str:
    """Returns a wait as one line."""
    shown = wait_object(row)
    return _line(
        shown["name"],
        shown["status"],
        {
            "job": shown["job"],
            "since": shown["since"],
            "until": shown["until"],
            "ended": shown["ended_at"],
            "by": shown["ended_by"],
            "error": shown["error"],
            "result": _result(shown["result"]) if "result" in row else None,
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


def hold_lines(run: Run) -> Iterator[str]:
    """Yields a run's approval request as lines; nothing where it is not held."""
    if run.status is Status.HELD:
        hold = HeldRun.of(run)
        yield f"{hold.hold}  {hold.subject}  since {iso(hold.held_at)}  {hold.reason}"
        if hold.shows:
            yield f"shows {hold.shows}"
        yield from unannounced_lines(hold)


def approvals(run: Run) -> dict[str, Any]:
    """Returns a run's approvals by subject."""
    return {
        subject: {
            "by": word.get("by"),
            "reason": word.get("reason"),
            "at": iso(from_ms(word["at"])) if "at" in word else None,
        }
        for subject, word in run.approvals.items()
    }


def approval_line(approval: tuple[str, Mapping[str, Any]]) -> str:
    """Returns an entry of `approvals` as one line."""
    subject, word = approval
    return f"{word['at']}  {subject} by {word['by']}: {word['reason']}"


def _line(name: str, state: str, values: Mapping[str, object]) -> str:
    named = (f"{label} {value}" for label, value in values.items() if value is not None)
    return GAP.join((name, state, *named))


def _result(value: Any) -> str:
    return cut(json.dumps(value, ensure_ascii=False), RESULT_SHOWN)
