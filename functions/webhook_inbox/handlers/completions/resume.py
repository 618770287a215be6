"""Sending a run again whose wait is over.

Whoever ends a wait writes that first and looks at the run second; a run is settled first and looks
at its wait second. So whichever of the two comes second sees the other. What a crash in between
leaves is sent at the end of the run's pause, which is never longer than RECHECK.
"""

from datetime import datetime, timedelta
from typing import Final

from webhook_inbox.domain.errors import ConditionFailed
from webhook_inbox.domain.model import Run, Status
from webhook_inbox.domain.ports import Table
from webhook_inbox.handlers.completions.journal import CompletionWait
from webhook_inbox.ledger.deferral import resume
from webhook_inbox.ledger.settle import as_seen
from webhook_inbox.queue.lanes import Lanes
from webhook_inbox.queue.message import RunMessage

# As long as SQS delays a message: such a pause asks nothing of the reconciler.
RECHECK: Final = timedelta(minutes=15)


def wake_waiting(
    table: Table, lanes: Lanes, run: Run, wait: CompletionWait, *, lane: str, now: datetime
) -> None:
    """Sends a run again if it waits for this.

    Raises:
        Unavailable: the table or the queue failed; asked once more, it does what is left to do.
    """
    if _waits(run, wait):
        try:
            resume(table, run, unchanged=as_seen(run), now=now)
        except ConditionFailed:
            return  # Whoever has changed it looks at the wait as well.
    elif run.status is not Status.PENDING:
        return
    lanes.send([(lane, RunMessage.of(run))])


def _waits(run: Run, wait: CompletionWait) -> bool:
    if run.status is Status.DEFERRED:
        return run.waits_for == wait.place.subject
    # That its job has ended tells what a person was asked: whether it was started.
    return run.status is Status.HELD and run.held.get("subject") == f"effect:{wait.effect}"
