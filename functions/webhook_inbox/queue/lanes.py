"""The work queues, one per lane."""

from collections.abc import Iterable, Mapping
from typing import Final

from webhook_inbox.domain.errors import Unavailable
from webhook_inbox.domain.manifest import DEFAULT_LANE
from webhook_inbox.domain.ports import Backlog, Outgoing, Queue
from webhook_inbox.queue.message import RunMessage

LARGE_BACKLOG: Final = 1000


class Lanes:
    """Sends run references to the queue of each run's lane."""

    def __init__(self, queues: Mapping[str, Queue]) -> None:
        self._queues = queues

    def queue(self, lane: str) -> Queue:
        """Returns a lane's queue; a lane that is gone after a deployment is the default one."""
        found = self._queues.get(lane)
        return self._queues[DEFAULT_LANE] if found is None else found

    def send(self, references: Iterable[tuple[str, RunMessage]], *, delay: int = 0) -> None:
        """Sends (lane, reference) pairs; all of them, or it raises.

        Those of one FIFO lane are sent as they are ordered here; it knows no delay.

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
    """How much waits in each lane, asked for once a pass."""

    def __init__(self, lanes: Lanes) -> None:
        self._lanes = lanes
        self._known: dict[str, Backlog] = {}

    def of(self, lane: str) -> Backlog:
        """Returns a lane's backlog; raises Unavailable."""
        if lane not in self._known:
            self._known[lane] = self._lanes.queue(lane).backlog()
        return self._known[lane]

    def is_large(self, lane: str) -> bool:
        """Tells whether a message that did not come is most likely among those that wait."""
        return self.of(lane).visible > LARGE_BACKLOG
