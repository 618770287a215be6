"""When the reconciler reads a run next: its `due_at` in the `by_due` index."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, Final

from webhook_inbox.domain.timestamps import from_ms
from webhook_inbox.ledger.schema import EVENT_LIFE, EXPIRY_WARNING, RUN_LIFE

# The timeout of the processor's function.
FUNCTION_TIMEOUT: Final = timedelta(seconds=60)
# The work queues' visibility timeout: six times the function's timeout, as AWS recommends; longer
# than any lease (the function's timeout and a margin).
VISIBILITY_TIMEOUT: Final = 6 * FUNCTION_TIMEOUT
# A message counts as missing only once it could have been received, lost by a crashed worker,
# and received again.
SLACK: Final = 2 * VISIBILITY_TIMEOUT
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
# A run that people decide is read this often: a worker may be lost between its last look at the
# request and the end of its attempt.
HELD_LOOK: Final = timedelta(hours=1)


def overdue_at(due: datetime) -> datetime:
    """Returns when the reconciler sends a run again whose message was due at this time."""
    return due + SLACK + RESENDS[0]


def next_resend(now: datetime, resends: int) -> datetime:
    """Returns when to read a run again after its `resends`-th resend."""
    return now + (RESENDS[resends] if resends < len(RESENDS) else LAST_WAIT)


def held_look_at(held: Mapping[str, Any], now: datetime, at: datetime) -> datetime:
    """Returns when to read a held run: `at`, or earlier if it has to wake by itself."""
    if "wake_at" not in held:
        return at
    return min(at, now + HELD_LOOK, from_ms(held["wake_at"]))


def event_end(run_expires_at: datetime) -> datetime:
    """Returns when the run's event expires; a run that still waits is given up then."""
    return run_expires_at - (RUN_LIFE - EVENT_LIFE)


def expiry_warning_at(run_expires_at: datetime) -> datetime:
    """Returns when a waiting run starts to raise alarms: 7 days before its event expires (G1)."""
    return event_end(run_expires_at) - EXPIRY_WARNING
