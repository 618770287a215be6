"""How each queue type implements a wait: visibility timeout, delayed copy, or ledger only.

                           standard lane                             FIFO lane
    failed attempt         delayed copy; parked if over 15 minutes   visibility timeout up to 60 s,
                                                                     else parked
    deferral               delayed copy; parked if over 15 minutes   the same
    held for an approval   deleted; the approval sends a new one     the same
    dead                   moved to the DLQ by SQS                   deleted; replay needs none
    last receive           replaced by a copy, without an attempt    as any other
    storage failed         hidden, twice as long at each receive     visibility timeout

A message of a standard lane therefore serves one attempt. Its receive count covers only crashes and
receives without a result, so it need not cover the attempts of a handler.

In a FIFO lane SQS delivers no later message of a group while an earlier one is in flight. There a
message stays while its run is attempted or waits shortly. A run is parked or held only after it has
an entry in the line of its ordering key (queue/line), which keeps its place without a message.
"""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import ClassVar, Final

from webhook_inbox.domain.errors import Unavailable
from webhook_inbox.domain.model import Run, WaitStrategy
from webhook_inbox.domain.ports import Message
from webhook_inbox.ledger.deadlines import VISIBILITY_TIMEOUT
from webhook_inbox.ledger.deferral import Deferral
from webhook_inbox.ledger.lease import CLOCK_SKEW, Refusal
from webhook_inbox.queue.lanes import Lanes
from webhook_inbox.queue.message import RunMessage
from webhook_inbox.queue.outcomes import Worker

# SQS delays a message by at most 15 minutes.
MAX_DELAY: Final = timedelta(minutes=15)
# The longest wait of a FIFO message that hides; the run of a longer one is parked.
MAX_HIDDEN: Final = timedelta(seconds=60)
MIN_DELAY: Final = timedelta(seconds=1)
# Short waits may use this part of a FIFO message's receives. The rest is left for receives that no
# wait has planned, since SQS would move the message to the DLQ after the last one.
WAITING_RECEIVES: Final = 1 / 10
# The longest timeout of a message whose storage failed is 96 minutes, so that the lane continues
# soon after an outage.
MAX_DOUBLINGS: Final = 4


@dataclass(frozen=True, slots=True)
class PlannedWait:
    """The length of a wait and how it is implemented."""

    delay: timedelta
    wait: WaitStrategy


def plan_wait(delay: timedelta) -> PlannedWait:
    """Plans a wait in a standard lane."""
    delay = max(delay, timedelta(0))
    return PlannedWait(delay, WaitStrategy.COPY if delay <= MAX_DELAY else WaitStrategy.PARKED)


def ceil_seconds(delay: timedelta) -> int:
    """Returns whole seconds, rounded up, so that no message arrives before it is due."""
    return -(-delay // timedelta(seconds=1))


class StandardQueuePolicy:
    """Handles one message of a standard lane: a message of the next generation replaces it."""

    fifo: ClassVar = False

    def __init__(self, lanes: Lanes, worker: Worker, message: Message) -> None:
        self.lanes = lanes
        self.worker = worker
        self.message = message

    @property
    def received_before(self) -> bool:
        """True if an earlier receive of this message of a standard lane may have been settled."""
        return not self.fifo and self.message.receive_count > 1

    @property
    def is_last_receive(self) -> bool:
        """True if SQS moves the message to the DLQ instead of delivering it again."""
        last = self.message.receive_count >= self.worker.max_receive_count
        return self.received_before and last

    def retry(self, delay: timedelta) -> PlannedWait:
        """Plans the wait before the next attempt."""
        return plan_wait(delay)

    def deferral(self, delay: timedelta, *, parked: bool) -> PlannedWait:
        """Plans the wait of a deferred run; a `parked` one can be resumed early."""
        planned = plan_wait(delay)
        return replace(planned, wait=WaitStrategy.PARKED) if parked else planned

    def before_lease(self, deferral: Deferral, now: datetime) -> Deferral:  # noqa: ARG002 - FIFO uses it
        """Adapts a pre-lease deferral to this lane."""
        return deferral

    def receive_again(
        self,
        why: Refusal,  # noqa: ARG002 - a FIFO lane decides by them
        run: Run,  # noqa: ARG002
        now: datetime,  # noqa: ARG002
    ) -> timedelta | None:
        """Returns the delay until a message whose run is not leased is received again, or None."""
        return None

    def wait(self, run: Run, planned: PlannedWait) -> bool:
        """Starts a settled run's wait; returns whether this message implements it.

        Raises:
            Unavailable: the queue failed; this message is received again.
        """
        if planned.wait is WaitStrategy.HIDDEN:
            self.hide(planned.delay)
        elif planned.wait is WaitStrategy.COPY:
            delay = ceil_seconds(planned.delay)
            self.lanes.send([(self.worker.lane, RunMessage.of(run))], delay=delay)
        return planned.wait is WaitStrategy.HIDDEN

    def hide(self, delay: timedelta) -> None:
        """Hides the message for a time; if SQS fails, its own visibility timeout applies."""
        try:
            queue = self.lanes.queue(self.worker.lane)
            queue.hide(self.message.receipt, ceil_seconds(max(delay, timedelta(0))))
        except Unavailable:
            return

    def outlast(self) -> None:
        """Hides a message whose storage failed, twice as long at each receive.

        A long outage would otherwise use up the receives of all messages.
        """
        if self.received_before:  # The first receive keeps the queue's own timeout.
            doublings = min(self.message.receive_count - 1, MAX_DOUBLINGS)
            self.hide(VISIBILITY_TIMEOUT * 2**doublings)

    def move_to_dlq(self) -> None:
        """Makes the message visible at once, so that SQS soon moves it to the DLQ itself.

        A message sent to the DLQ directly would break the console's redrive
        (CouldNotDetermineMessageSource).
        """
        self.hide(timedelta(0))

    def end_dead(self) -> bool:
        """Disposes of a dead run's message; returns whether it is kept, for the DLQ."""
        self.move_to_dlq()
        return True


class FifoQueuePolicy(StandardQueuePolicy):
    """Handles one message of a FIFO lane: it serves its run until that ends or is parked."""

    fifo: ClassVar = True

    def retry(self, delay: timedelta) -> PlannedWait:
        """See the base class."""
        most = self.worker.max_receive_count * WAITING_RECEIVES
        hides = delay <= MAX_HIDDEN and self.message.receive_count <= most
        return PlannedWait(delay, WaitStrategy.HIDDEN if hides else WaitStrategy.PARKED)

    def deferral(self, delay: timedelta, *, parked: bool) -> PlannedWait:
        """See the base class."""
        return PlannedWait(delay, WaitStrategy.PARKED) if parked else self.retry(delay)

    def before_lease(self, deferral: Deferral, now: datetime) -> Deferral:
        """See the base class."""
        if deferral.wait is WaitStrategy.PARKED:
            return deferral
        return replace(deferral, wait=self.retry(deferral.due - now).wait)

    def receive_again(self, why: Refusal, run: Run, now: datetime) -> timedelta | None:
        """See the base class."""
        match why:
            case Refusal.FINISHED | Refusal.DEAD | Refusal.EXHAUSTED | Refusal.HELD:
                return None
            case Refusal.CLAIMED_HERE | Refusal.CLAIMED_ELSEWHERE if run.claimed_until:
                # A lease is over when this moment has passed, not when it is reached.
                return max(run.claimed_until + CLOCK_SKEW - now, MIN_DELAY)
            case Refusal.NOT_DUE if run.next_attempt_at:
                # The reconciler sends a parked run.
                return None if run.parked else max(run.next_attempt_at - now, MIN_DELAY)
            case _:
                # The run has changed since its generation was read: it is read again.
                return MIN_DELAY

    def end_dead(self) -> bool:
        """See the base class: keeping it for 1,000 receives would block the key's later runs."""
        return False


def queue_policy_of(lanes: Lanes, worker: Worker, message: Message) -> StandardQueuePolicy:
    """Returns the policy of the worker's lane for one message."""
    policy = FifoQueuePolicy if lanes.queue(worker.lane).fifo else StandardQueuePolicy
    return policy(lanes, worker, message)
