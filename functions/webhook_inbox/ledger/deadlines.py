"""When the reconciler has to look at a run again: its place in the `by_due` index."""

from datetime import datetime, timedelta
from typing import Final

from webhook_inbox.ledger.schema import EVENT_LIFE, LAST_CALL, RUN_LIFE

# Six times the longest function timeout, as the queues are configured.
VISIBILITY: Final = timedelta(minutes=6)
# A message that should have come is not missed before it can have been received, lost by its
# worker, and received again.
SLACK: Final = 2 * VISIBILITY
# How long after each other an overdue run is sent again; after the last of these it is lost.
RESENDS: Final = (
    timedelta(minutes=15),
    timedelta(hours=1),
    timedelta(hours=4),
    timedelta(days=1),
    timedelta(days=1),
    timedelta(days=1),
)
LAST_WAIT: Final = timedelta(days=1)


def overdue_at(due: datetime) -> datetime:
    """Returns when a run that a message carries is sent again if nothing was heard of it."""
    return due + SLACK + RESENDS[0]


def next_resend(now: datetime, resends: int) -> datetime:
    """Returns when to look again after the run was re-sent for the `resends`-th time."""
    return now + (RESENDS[resends] if resends < len(RESENDS) else LAST_WAIT)


def event_end(run_expires_at: datetime) -> datetime:
    """Returns when the run's event expires; what still waits then is given up."""
    return run_expires_at - (RUN_LIFE - EVENT_LIFE)


def last_call(run_expires_at: datetime) -> datetime:
    """Returns from when a waiting run is alarmed, 7 days before its event's end (G1)."""
    return event_end(run_expires_at) - LAST_CALL
