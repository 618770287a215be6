"""The history of an event: attempts, replays and operator actions in the order of their times."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from webhook_inbox.domain.audit import Actor, AuditedAction, AuditEntry
from webhook_inbox.domain.model import Attempt, Overview, Run, Status
from webhook_inbox.domain.ports import Key
from webhook_inbox.domain.timestamps import from_ms
from webhook_inbox.ledger.schema import key_of_run
from webhook_inbox.ledger.settle import with_lost

Happening = Attempt | AuditEntry


def attempts_of(run: Run) -> tuple[Attempt, ...]:
    """Returns a run's attempts, including lost ones before the attempt in progress."""
    if run.status is not Status.PROCESSING or run.claimed_at is None:
        return run.attempts
    return with_lost(run, before=run.attempt_count, noticed_at=run.claimed_at)


def history_of(overview: Overview) -> dict[str, tuple[Happening, ...]]:
    """Returns what happened to the run of each handler, and under "" to the event itself."""
    history: dict[str, list[Happening]] = {"": []}
    for entry in overview.actions:
        history.setdefault(entry.request.get("handler", ""), []).append(entry)
    for run in overview.runs:
        replays = [_replayed(run, replay) for replay in run.replays]
        history.setdefault(run.handler, []).extend((*replays, *attempts_of(run)))
    return {handler: tuple(sorted(found, key=time_of)) for handler, found in history.items()}


def time_of(each: Happening) -> datetime:
    """Returns when it happened, or began."""
    return each.at if isinstance(each, AuditEntry) else each.started_at


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
