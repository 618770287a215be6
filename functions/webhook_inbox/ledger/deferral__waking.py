"""Waking a parked run: it is pending, and whoever woke it sends it."""

from collections.abc import Mapping
from datetime import datetime

from webhook_inbox.domain.conditions import Condition
from webhook_inbox.domain.errors import ConditionFailed
from webhook_inbox.domain.model import Run, Status
from webhook_inbox.domain.ports import Change, Table
from webhook_inbox.domain.timestamps__instants import to_ms
from webhook_inbox.ledger.deadlines import overdue_at
from webhook_inbox.ledger.schema import carries, run_key


def wake(
    table: Table,
    run: Run,
    *,
    unchanged: Condition,
    now: datetime,
    values: Mapping[str, int] | None = None,
) -> None:
    """Makes a parked run pending, with these values; send it then, with the ticket that it has.

    The ticket stays: nothing of a parked run waits in the queue that would have to be replaced.
    After a crash between the two the reconciler sends it as it does any overdue run.

    Raises:
        ConditionFailed: it has changed since it was read.
        Unavailable: the table failed; the change may have been made.
    """
    change = Change(
        set={
            "status": str(Status.PENDING),
            "last_at": to_ms(now),
            "attention_at": to_ms(overdue_at(now)),
            **(values or {}),
        },
        remove=("parked", "next_attempt_at", "lease_id", "waits_for"),
    )
    try:
        table.update(run_key(run.source, run.event_id, run.handler), change, when=unchanged)
    except ConditionFailed as error:
        # Our own: an earlier try of this call succeeded and its answer was lost.
        if not carries(error.old, change.set):
            raise
