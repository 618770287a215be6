"""Skip: closes a dead run, removes it from the due index and unblocks its ordering key."""

from datetime import datetime
from typing import Final

from webhook_inbox.domain.audit import Actor, AuditedAction, EventName
from webhook_inbox.domain.errors import ConditionFailed
from webhook_inbox.domain.model import Run, SkipReason, Status
from webhook_inbox.domain.ports import Change, Randomness, Table
from webhook_inbox.domain.timestamps import to_ms
from webhook_inbox.ledger import audit
from webhook_inbox.ledger.schema import key_of_run, transition
from webhook_inbox.ledger.settle import as_seen, cut
from webhook_inbox.queue.line import run_ended

_DEAD_ATTRIBUTES: Final = ("due_bucket", "due_at", "lease_id", "blocking")


def skip(
    table: Table, randomness: Randomness, run: Run, *, by: Actor, reason: str, now: datetime
) -> bool:
    """Finishes a dead run as skipped, and continues its line; False if it is no longer dead.

    Raises:
        Unavailable: the ledger failed; the run may be skipped, and the call can be repeated.
    """
    if run.status is not Status.DEAD_LETTER:
        return False
    recorded = audit.record(
        table,
        randomness,
        action=AuditedAction.SKIP,
        by=by,
        reason=reason,
        request={"source": run.source, "handler": run.handler},
        event=EventName(run.source, run.event_id),
        now=now,
    )
    change = Change(
        set={
            "status": str(Status.SKIPPED),
            "skip_reason": str(SkipReason.OPERATOR),
            "last_error": cut(f"skipped by {by}: {reason}; last error: {run.last_error}"),
            "last_at": to_ms(now),
            "done_at": to_ms(now),
        },
        remove=_DEAD_ATTRIBUTES,
    )
    try:
        transition(table, key_of_run(run), change, when=as_seen(run))
    except ConditionFailed:
        recorded.conclude({"changed": 1})
        return False
    recorded.conclude({"skipped": 1})
    run_ended(table, run, now=now)
    return True
