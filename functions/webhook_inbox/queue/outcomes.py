"""The processor's report of one queue message."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum

from webhook_inbox.domain.trace import Trace
from webhook_inbox.queue.message import RunMessage


class RunOutcome(StrEnum):
    """How the processing of one message ended."""

    DONE = "done"
    SKIPPED = "skipped"  # the handler had nothing to do
    HELD = "held"  # waits for an approval
    FAILED = "failed"  # will be retried
    DEFERRED = "deferred"  # waits; no attempt was counted
    WAITING = "waiting"  # FIFO lane: the run cannot be leased yet
    DEAD = "dead"  # gave up on the run just now
    TO_DLQ = "to-dlq"  # the run died earlier; SQS is about to move the message to the DLQ
    DELETED = "deleted"  # nothing left to do for this message
    IN_FLIGHT = "in-flight"  # a worker holds the run's lease through this very message
    SUPERSEDED = "superseded"  # the lease was lost before the attempt could be settled
    FOREIGN = "foreign"  # not sent by an inbox; SQS is about to move it to the DLQ
    UNAVAILABLE = "unavailable"  # ledger, queue or blob storage failed
    BROKEN = "broken"  # a fault in the inbox itself


@dataclass(frozen=True, slots=True)
class Worker:
    """The invocation that processes: `name` is stored in `claimed_by`."""

    name: str
    code_version: str
    lane: str
    max_receive_count: int


@dataclass(frozen=True, slots=True)
class Observed:
    """The parts of a message's log line that its outcome does not need.

    Attributes:
        type: the event's type.
        trace: the event's trace, with the span of the attempt.
        taken: how long the handler was running; None if it was not called.
        effects: the effects that the attempt used, by name: "committed", "recorded" (by an earlier
            attempt), "failed" or "in doubt".
    """

    type: str
    trace: Trace
    taken: timedelta | None = None
    effects: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RunResult:
    """The result of processing one message.

    Attributes:
        reference: the message's content; None if it could not be decoded.
        due: when the run continues; None if it does not wait for a time.
        items: the number of a batch's items by outcome, once all were read.
        page: whether to page the on-call engineer.
        doubtful: whether the run is held because an effect is in doubt.
        received_at: when the run's event was received; None if no attempt was made.
        deaths: how often the run has died, this time included.
        replayed: whether a replay has sent the run.
        degraded: the checks that were skipped because the ledger did not answer.
        observed: what else its log line has; None if the event was not read.
        hide: removes the values of the event's personal fields from a text.
        keeps_message: whether SQS must keep the message. True unless every consequence is stored.
    """

    outcome: RunOutcome
    reference: RunMessage | None = None
    attempt: int = 0
    detail: str = ""
    error: BaseException | None = None
    due: datetime | None = None
    items: Mapping[str, int] = field(default_factory=dict)
    page: bool = False
    doubtful: bool = False
    received_at: datetime | None = None
    deaths: int = 0
    replayed: bool = False
    degraded: tuple[str, ...] = ()
    observed: Observed | None = None
    hide: Callable[[str], str] = field(default=str, compare=False, repr=False)
    keeps_message: bool = True
