"""What carries a run that waits, and what becomes of its message: by the kind of its lane.

                        standard lane                      FIFO lane
    a failed attempt    hidden up to 60 s, else a copy     hidden
    a deferral          a delayed copy, a long one parked  hidden
    held for a person   dropped: the approval sends anew   hidden
    dead                buried, for SQS's redrive          dropped: replay works from the ledger

In a FIFO lane a message that stays keeps the next ones of its ordering key back; that is the order. So
the first message of an ordering key's stands for its run until that is settled, whatever else is sent.
"""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final

from webhook_inbox.domain.errors import Unavailable
from webhook_inbox.domain.model import Run, WaitStrategy
from webhook_inbox.domain.ports import Message
from webhook_inbox.ledger.deferral import Deferral
from webhook_inbox.ledger.lease import CLOCK_SKEW, Refusal
from webhook_inbox.ledger.pauses import RESUMPTION
from webhook_inbox.queue.lanes import Lanes
from webhook_inbox.queue.message import RunMessage
from webhook_inbox.queue.outcomes import RunOutcome, Worker

# SQS: a visibility timeout keeps a message in flight, and 120,000 in flight stop a queue, so
# only short waits are spent that way; a message's delay ends at 15 minutes.
BY_VISIBILITY: Final = timedelta(seconds=60)
BY_DELAY: Final = timedelta(minutes=15)


@dataclass(frozen=True, slots=True)
class PlannedWait:
    """A wait and what carries it."""

    delay: timedelta
    wait: WaitStrategy


def plan_wait(delay: timedelta, *, may_hide: bool) -> PlannedWait:
    """Returns what carries a wait; `may_hide` allows the message itself to carry it."""
    delay = max(delay, timedelta(0))
    if may_hide and delay <= BY_VISIBILITY:
        return PlannedWait(delay, WaitStrategy.HIDDEN)
    if delay <= BY_DELAY:
        return PlannedWait(delay, WaitStrategy.COPY)
    return PlannedWait(delay, WaitStrategy.PARKED)


def seconds_up(delay: timedelta) -> int:
    """Returns whole seconds, rounded up, so that nothing arrives before it is due."""
    return -(-delay // timedelta(seconds=1))


# A message that waits is looked at again and again, ever more rarely, since what it waits for may
# come early: a resumption, an approval, a replay. SQS keeps it for 14 days and hands it out 1000
# times; at this pace the second is enough for the first.
LOOK_AGAIN: Final = timedelta(seconds=15)
RAREST_LOOK: Final = timedelta(minutes=20)
AT_ONCE: Final = timedelta(seconds=1)


class StandardQueuePolicy:
    """How a standard lane carries waits: messages replace each other, by their generations."""

    def __init__(self, lanes: Lanes, worker: Worker) -> None:
        self._lanes = lanes
        self._worker = worker

    def failed(self, delay: timedelta, message: Message) -> PlannedWait:
        """Returns what carries a run to its next attempt."""
        # Hiding the message spends a receive: at the limit a copy is sent instead, or SQS would
        # move a run to the DLQ that has attempts left.
        may_hide = message.receive_count < self._worker.max_receive_count
        return plan_wait(delay, may_hide=may_hide)

    def deferred(self, delay: timedelta, *, parked: bool) -> PlannedWait:
        """Returns what carries a deferred run; `parked`, so that somebody may wake it earlier."""
        chosen = plan_wait(delay, may_hide=False)
        return replace(chosen, wait=WaitStrategy.PARKED) if parked else chosen

    def postponed(
        self,
        waits: Deferral,
        message: Message,  # noqa: ARG002 - a FIFO lane looks at it
        now: datetime,  # noqa: ARG002
    ) -> Deferral:
        """Returns the postponement as this lane carries it."""
        return waits

    def stays(
        self,
        why: Refusal,  # noqa: ARG002 - a FIFO lane looks at them
        run: Run | None,  # noqa: ARG002
        now: datetime,  # noqa: ARG002
    ) -> timedelta | None:
        """Returns until when a message has to come again whose run could not be claimed."""
        return None

    def outcome(self, outcome: RunOutcome) -> RunOutcome:
        """Returns what becomes of a message whose run has come to this."""
        return outcome

    def carry(self, run: Run, chosen: PlannedWait, message: Message) -> None:
        """Lets this message, another one or none carry a settled run over its wait.

        Raises:
            Unavailable: the queue failed; this message comes back.
        """
        if chosen.wait is WaitStrategy.HIDDEN:
            self.hide(message, chosen.delay)
        elif chosen.wait is WaitStrategy.COPY:
            delay = seconds_up(chosen.delay)
            self._lanes.send([(self._worker.lane, RunMessage.of(run))], delay=delay)

    def hide(self, message: Message, wait: timedelta) -> None:
        """Lets a message come again after the wait, as far as the queue can be reached."""
        try:
            queue = self._lanes.queue(self._worker.lane)
            queue.hide(message.receipt, seconds_up(max(wait, timedelta(0))))
        except Unavailable:
            # It comes back after the queue's own visibility timeout: later, and no worse.
            return

    def hold(self, message: Message) -> None:
        """Lets a message wait for a person, where the lane needs it afterwards."""

    def bury(self, message: Message) -> None:
        """Shows a message again at once; kept, it soon reaches the DLQ by SQS's own redrive.

        A message sent to the DLQ by hand would make the console's redrive fail
        (CouldNotDetermineMessageSource).
        """
        self.hide(message, timedelta(0))

    def give_up(self, message: Message) -> None:
        """Does with the message of a dead run what this lane does with it."""
        self.bury(message)


class FifoQueuePolicy(StandardQueuePolicy):
    """How a FIFO lane carries waits: by one message, from a run's acceptance to its end."""

    def failed(self, delay: timedelta, message: Message) -> PlannedWait:  # noqa: ARG002
        """See a standard lane."""
        return PlannedWait(delay, WaitStrategy.HIDDEN)

    def deferred(self, delay: timedelta, *, parked: bool) -> PlannedWait:  # noqa: ARG002
        """See a standard lane."""
        return PlannedWait(delay, WaitStrategy.HIDDEN)

    def postponed(self, waits: Deferral, message: Message, now: datetime) -> Deferral:
        """See a standard lane."""
        if waits.wait is WaitStrategy.PARKED and waits.due <= now:
            return waits  # Not in this group: the reconciler sends it at once.
        # Nobody wakes a run that is not parked: it asks for itself whether its handler is resumed,
        # or the one before it done.
        asks = waits.due <= now or waits.waits_for == RESUMPTION
        due = now + _next_look(message) if asks else waits.due
        return replace(waits, due=due, wait=WaitStrategy.HIDDEN)

    def stays(self, why: Refusal, run: Run | None, now: datetime) -> timedelta | None:
        """See a standard lane."""
        match why:
            case Refusal.FINISHED | Refusal.DEAD | Refusal.EXHAUSTED:
                return None
            case Refusal.HELD:
                return RAREST_LOOK
            case Refusal.CLAIMED_HERE | Refusal.CLAIMED_ELSEWHERE if run and run.claimed_until:
                # A lease is over when this moment has passed, not when it has come.
                return max(run.claimed_until + CLOCK_SKEW - now, AT_ONCE)
            case Refusal.NOT_DUE if run and run.next_attempt_at:
                return max(run.next_attempt_at - now, AT_ONCE)
            case _:
                # The run has changed since its generation was read: it is read anew.
                return AT_ONCE

    def outcome(self, outcome: RunOutcome) -> RunOutcome:
        """See a standard lane."""
        return _IN_FIFO.get(outcome, outcome)

    def hide(self, message: Message, wait: timedelta) -> None:
        """See a standard lane; a long wait takes several looks."""
        super().hide(message, min(wait, _next_look(message)))

    def hold(self, message: Message) -> None:
        """See a standard lane."""
        self.hide(message, RAREST_LOOK)

    def give_up(self, message: Message) -> None:
        """Drops it: burying it would keep its ordering key's next ones back, a thousand times."""


_IN_FIFO: Final = {
    RunOutcome.HELD: RunOutcome.HELD_KEPT,
    RunOutcome.DEAD: RunOutcome.DEAD_DROPPED,
    RunOutcome.BURIED: RunOutcome.DROPPED,
    RunOutcome.SUPERSEDED: RunOutcome.WAITING,
}


def queue_policy_of(lanes: Lanes, worker: Worker) -> StandardQueuePolicy:
    """Returns how the worker's lane carries waits."""
    kind = FifoQueuePolicy if lanes.queue(worker.lane).fifo else StandardQueuePolicy
    return kind(lanes, worker)


def _next_look(message: Message) -> timedelta:
    return min(LOOK_AGAIN * message.receive_count, RAREST_LOOK)
