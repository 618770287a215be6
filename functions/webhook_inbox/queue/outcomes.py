"""What becomes of a queue message."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from webhook_inbox.queue.message import RunMessage


class RunOutcome(StrEnum):
    """What became of a message; the value is the metric's dimension.

    A message is dropped (SQS deletes it), kept (reported as failed, so that it comes back), or
    buried (kept and shown at once, again and again, until its receive count is used up and SQS
    moves it to the DLQ).
    """

    DONE = "done"
    SKIPPED = "skipped"  # there is nothing to do, and why
    HELD = "held"  # waits for a person
    FAILED_KEPT = "failed-kept"  # will be tried again through this message
    FAILED = "failed"  # will be tried again through another one
    DEFERRED = "deferred"  # waits, no attempt spent; another message or the reconciler wakes it
    DEFERRED_KEPT = "deferred-kept"  # the same, and this message comes back
    HELD_KEPT = "held-kept"  # waits for a person, and this message comes back to ask
    WAITING = "waiting"  # it is not its run's turn: comes back
    DEAD = "dead"  # given up just now: on its way to the DLQ
    DEAD_DROPPED = "dead-dropped"  # the same in a FIFO lane, whose DLQ gets no such message
    BURIED = "buried"  # given up before: on its way to the DLQ
    DROPPED = "dropped"  # there is nothing to do with it
    LEFT = "left"  # its run is being worked on through this very message
    SUPERSEDED = "superseded"  # the lease was lost before the attempt could be settled
    FOREIGN = "foreign"  # not one of ours: on its way to the DLQ
    UNAVAILABLE = "unavailable"  # ledger, queue or storage failed; comes back
    BROKEN = "broken"  # a fault of our own; comes back

    @property
    def keeps_message(self) -> bool:
        """Whether SQS must not delete the message."""
        return self not in _DROPPED


_DROPPED: Final = frozenset(
    {
        RunOutcome.DONE,
        RunOutcome.SKIPPED,
        RunOutcome.HELD,
        RunOutcome.FAILED,
        RunOutcome.DEFERRED,
        RunOutcome.DEAD_DROPPED,
        RunOutcome.DROPPED,
        RunOutcome.SUPERSEDED,
    }
)


@dataclass(frozen=True, slots=True)
class Worker:
    """Who processes: `name` shows in `claimed_by`, `code_version` in the run's row."""

    name: str
    code_version: str
    lane: str
    max_receive_count: int


@dataclass(frozen=True, slots=True)
class RunResult:
    """The outcome of a message, which run it was for, and what went wrong if anything did.

    Attributes:
        items: what became of a batch's items, by outcome, once all were looked at.
        page: whether somebody is to be woken.
        degraded: what could not be asked, and was passed over.
    """

    outcome: RunOutcome
    reference: RunMessage | None = None
    attempt: int = 0
    detail: str = ""
    error: BaseException | None = None
    items: Mapping[str, int] = field(default_factory=dict)
    page: bool = False
    degraded: tuple[str, ...] = ()
