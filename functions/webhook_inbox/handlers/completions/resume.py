"""Resumes a run whose wait has ended.

The receiver records the end of a job before it reads the run; the processor settles the run before
it reads the wait. So the later of the two sees the other's write. After a crash in between, the run
resumes at the end of its pause, at most RECHECK.
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

# The longest delay of an SQS message: a pause within it does not need the reconciler.
RECHECK: Final = timedelta(minutes=15)


def wake_waiting(
    table: Table, lanes: Lanes, run: Run, wait: CompletionWait, *, lane: str, now: datetime
) -> None:
    """Sends a run again if it waits for this.

    Raises:
        Unavailable: the table or the queue failed; a repeated call completes the work.
    """
    if _waits(run, wait):
        try:
            resume(table, run, unchanged=as_seen(run), now=now)
        except ConditionFailed:
            return  # The other writer checks the wait as well.
    elif run.status is not Status.PENDING:
        return
    lanes.send([(lane, RunMessage.of(run))])


def _waits(run: Run, wait: CompletionWait) -> bool:
    if run.status is Status.DEFERRED:
        return run.waits_for == wait.place.subject
    # The end of the job answers the question that the run is held for: whether it was started.
    return run.status is Status.HELD and run.held.get("subject") == f"effect:{wait.place.job}"
