"""When a failed attempt is tried again, and what carries the wait."""

from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from webhook_inbox.domain.model import Wait

# SQS: a visibility timeout keeps a message in flight, and 120,000 in flight stop a queue, so
# only short waits are spent that way; a message's delay ends at 15 minutes.
BY_VISIBILITY: Final = timedelta(seconds=60)
BY_DELAY: Final = timedelta(minutes=15)


@dataclass(frozen=True, slots=True)
class Pause:
    """A wait and what carries it."""

    delay: timedelta
    wait: Wait


def pause(delay: timedelta, *, may_hide: bool) -> Pause:
    """Returns what carries a wait; `may_hide` allows the message itself to carry it."""
    delay = max(delay, timedelta(0))
    if may_hide and delay <= BY_VISIBILITY:
        return Pause(delay, Wait.HIDDEN)
    if delay <= BY_DELAY:
        return Pause(delay, Wait.COPY)
    return Pause(delay, Wait.PARKED)


def seconds_up(delay: timedelta) -> int:
    """Returns whole seconds, rounded up, so that nothing arrives before it is due."""
    return -(-delay // timedelta(seconds=1))
