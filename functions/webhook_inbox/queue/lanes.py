"""The work queues, one per lane."""

from collections.abc import Iterable, Mapping
from datetime import timedelta
from typing import Final

from webhook_inbox.domain.errors import Unavailable
from webhook_inbox.domain.manifest import DEFAULT_LANE
from webhook_inbox.domain.ports import Backlog, Outgoing, Queue
from webhook_inbox.queue.message import RunMessage

LARGE_BACKLOG: Final = 1000
# CloudWatch reports the age of a queue's oldest message some minutes late.
METRIC_DELAY: Final = timedelta(minutes=10)

# An ordering key whose head waits leaves the queue after 100 receives of up to a minute each.
LONGEST_IN_QUEUE: Final = timedelta(hours=2)


class Lanes:
    """Sends messages to the queue of each run's lane."""

    def __init__(self, queues: Mapping[str, Queue]) -> None:
        self._queues = queues

    def queue(self, lane: str) -> Queue:
        """Returns a lane's queue, the default lane's if this deployment has no such lane."""
        found = self._queues.get(lane)
        return self._queues[DEFAULT_LANE] if found is None else found

    def send(self, references: Iterable[tuple[str, RunMessage]], *, delay: int = 0) -> None:
        """Sends (lane, message) pairs: all of them, or it raises.

        Messages of one FIFO lane keep this order; a FIFO lane ignores the delay.

        Raises:
            Unavailable: the queue failed or did not take every message; some may be sent.
        """
        by_lane: dict[str, list[Outgoing]] = {}
        for lane, reference in references:
            fifo = self.queue(lane).fifo
            by_lane.setdefault(lane, []).append(reference.outgoing(fifo=fifo, delay=delay))
        for lane, messages in by_lane.items():
            refused = self.queue(lane).send(messages)
            if refused:
                cause = f"{len(refused)} of {len(messages)} messages not taken"
                raise Unavailable("sqs", "SendMessageBatch", cause)


class Backlogs:
    """The backlog of each lane, read once per pass."""

    def __init__(self, lanes: Lanes) -> None:
        self._lanes = lanes
        self._known: dict[str, Backlog] = {}

    def of(self, lane: str) -> Backlog:
        """Returns a lane's backlog; raises Unavailable."""
        if lane not in self._known:
            self._known[lane] = self._lanes.queue(lane).backlog()
        return self._known[lane]

    def explained_age(self, lane: str) -> timedelta:
        """Returns the age up to which a run that has not begun may wait in the lane's backlog.

        It is `timedelta.max` for a large backlog of unknown age, and two hours at most for a small
        one of a FIFO lane, whose oldest message may wait for its ordering key alone.

        Raises:
            Unavailable: the queue failed.
        """
        backlog = self.of(lane)
        # A large backlog probably contains the message.
        if backlog.visible > LARGE_BACKLOG:
            return timedelta.max if backlog.oldest is None else backlog.oldest + METRIC_DELAY
        # A message in flight is in no backlog, although it may be the oldest one.
        if not backlog.visible or backlog.oldest is None:
            return timedelta(0)
        if self._lanes.queue(lane).fifo:
            return min(backlog.oldest, LONGEST_IN_QUEUE)
        return backlog.oldest
