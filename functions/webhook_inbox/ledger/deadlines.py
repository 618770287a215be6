"""When the reconciler reads a run next: its `due_at` in the `by_due` index."""

from datetime import datetime, timedelta
from typing import Final

from webhook_inbox.ledger.schema import EVENT_LIFE, EXPIRY_WARNING, RUN_LIFE

# The queues' visibility timeout: six times the longest function timeout.
VISIBILITY: Final = timedelta(minutes=6)
# A message counts as missing only once it could have been received, lost by a crashed worker,
# and received again.
SLACK: Final = 2 * VISIBILITY
# The waits between resends of an overdue run; after the last one it is dead.
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
    """Returns when the reconciler sends a run again whose message was due at this time."""
    return due + SLACK + RESENDS[0]


def next_resend(now: datetime, resends: int) -> datetime:
    """Returns when to read a run again after its `resends`-th resend."""
    return now + (RESENDS[resends] if resends < len(RESENDS) else LAST_WAIT)


def event_end(run_expires_at: datetime) -> datetime:
    """Returns when the run's event expires; a run that still waits is given up then."""
    return run_expires_at - (RUN_LIFE - EVENT_LIFE)


def expiry_warning_at(run_expires_at: datetime) -> datetime:
    """Returns when a waiting run starts to raise alarms: 7 days before its event expires (G1)."""
    return event_end(run_expires_at) - EXPIRY_WARNING
