"""When a failed attempt is tried again, and what carries the wait."""

from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import Final

from webhook_inbox.manifest import Backoff
from webhook_inbox.ports import Chance

# SQS: a visibility timeout keeps a message in flight, and 120,000 in flight stop a queue, so
# only short waits are spent that way; a message's delay ends at 15 minutes.
BY_VISIBILITY: Final = timedelta(seconds=60)
BY_DELAY: Final = timedelta(minutes=15)


class Wait(StrEnum):
    """What carries a run over its wait."""

    HIDDEN = "hidden"  # this message, by its visibility timeout
    COPY = "copy"  # a delayed copy with the next ticket; this message goes
    PARKED = "parked"  # nothing but the ledger; the reconciler sends it when due


@dataclass(frozen=True, slots=True)
class Pause:
    """A wait and what carries it."""

    delay: timedelta
    wait: Wait


def backoff_delay(backoff: Backoff, attempt: int, chance: Chance) -> timedelta:
    """Returns exponential backoff with full jitter for the attempt (from 1) that failed."""
    # The exponent is bounded so that a high attempt number cannot overflow a float.
    ceiling = min(backoff.cap, backoff.base * backoff.factor ** min(attempt - 1, 64))
    return timedelta(seconds=chance.uniform(0, ceiling))


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
