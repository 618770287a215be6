"""SQS standard queues in memory."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import ClassVar, Final

from webhook_inbox.adapters.memory.faults import Faults, FaultyCall, no_faults
from webhook_inbox.domain.errors import Unavailable
from webhook_inbox.domain.ports import Backlog, Clock, Message, Outgoing
from webhook_inbox.domain.quotas import HIDE_SECONDS, RECEIVE_BATCH, batches, takes
from webhook_inbox.domain.timestamps import from_ms, to_ms

# A message received so often moves to the back of the queue, and its age no longer counts.
POISON: Final = 3

Fields = tuple[str, str, int, int, int, str, str, int]
# The number of messages ever sent, the messages, and the valid deduplication ids.
Snapshot = tuple[int, tuple[Fields, ...], tuple[tuple[str, int], ...]]


@dataclass(slots=True)
class Stored:
    """One message; times are epoch ms, receipt and `received_at` those of its latest receive."""

    id: str
    body: str
    sent_at: int
    visible_at: int
    receive_count: int = 0
    receipt: str = ""
    group: str = ""
    hops: int = 0
    received_at: int = 0

    @property
    def poison(self) -> bool:
        """True if it was received so often that a standard queue moves it to the back."""
        return self.receive_count >= POISON

    def handed_out(self, queue: str, now: int, hidden_for: int) -> Message:
        """Returns the message for a receive, hidden for so many seconds."""
        self.receive_count += 1
        self.received_at = now
        self.visible_at = now + hidden_for * 1000
        self.receipt = f"{queue}/{self.id}/{self.receive_count}"
        return Message(
            id=self.id,
            receipt=self.receipt,
            body=self.body,
            sent_at=from_ms(self.sent_at),
            receive_count=self.receive_count,
        )

    def fields(self) -> Fields:
        """Returns the identifying attributes, in order.

        `received_at` is left out: it only bounds the visibility timeout, and equal states would
        differ by it.
        """
        return (
            self.id,
            self.body,
            self.sent_at,
            self.visible_at,
            self.receive_count,
            self.receipt,
            self.group,
            self.hops,
        )


WEEK: Final = timedelta(days=7)


class MemoryQueue:
    """A standard queue: at least once, out of order after a failure, redriven by receive count.

    Args:
        clock: the time for visibility, delay and retention.
        name: the prefix of its messages' ids; unique among queues that share a DLQ.
        dead_letters: its DLQ, of the same kind.
        max_receive_count: the receives of a message before it moves there, 1-1000.
        retention: the life of a message from its first sending, DLQ included.
        faults: the faults of its calls.
        refuses: the entries of a batch that the queue rejects.
    """

    fifo: ClassVar[bool] = False

    def __init__(
        self,
        clock: Clock,
        *,
        name: str = "queue",
        dead_letters: "MemoryQueue | None" = None,
        max_receive_count: int = 5,
        retention: timedelta = WEEK,
        faults: Faults = no_faults,
        refuses: Callable[[Outgoing], bool] = lambda _: False,
    ) -> None:
        self.faults = faults
        self.refuses = refuses
        self._clock = clock
        self._name = name
        self._dead_letters = dead_letters
        self._max_receive_count = max_receive_count
        self._retention = retention // timedelta(milliseconds=1)
        self._messages: dict[str, Stored] = {}
        self._remembered: dict[str, int] = {}
        self._sent = 0
        self._sources: dict[str, MemoryQueue] = {}
        if dead_letters is not None:
            dead_letters._serve(self)  # noqa: SLF001 - its own class

    def send(self, messages: Sequence[Outgoing], *, hops: int = 0) -> Sequence[Outgoing]:
        """See the port; `hops` is the length of the chain of invocations so far."""
        refused = [message for message in messages if not takes(message, fifo=self.fifo)]
        for batch in batches([m for m in messages if m not in refused] if refused else messages):
            with self._call("SendMessageBatch"):
                for message in batch:
                    if self.refuses(message):
                        refused.append(message)
                    else:
                        self._enqueue(message, hops)
        return refused

    def hide(self, receipt: str, seconds: int) -> None:
        """See the port; the 12 hours begin at the receive, not at this call."""
        with self._call("ChangeMessageVisibility"):
            stored, now = self._held(receipt, "ChangeMessageVisibility"), self._now()
            visible_at = now + seconds * 1000
            if stored is None:
                raise refusal("ChangeMessageVisibility", "InvalidParameterValue: ReceiptHandle")
            if stored.visible_at <= now:
                raise refusal("ChangeMessageVisibility", "MessageNotInflight")
            if not 0 <= seconds <= HIDE_SECONDS - (now - stored.received_at) / 1000:
                raise refusal("ChangeMessageVisibility", "InvalidParameterValue: too long")
            stored.visible_at = visible_at

    def receive(self, limit: int, *, hidden_for: int) -> Sequence[Message]:
        """See the port."""
        with self._call("ReceiveMessage"):
            if not (1 <= limit <= RECEIVE_BATCH and 0 <= hidden_for <= HIDE_SECONDS):
                raise refusal("ReceiveMessage", "InvalidParameterValue: too much or too long")
            now = self._now()
            received: list[Message] = []
            for stored in self._available(now):
                if len(received) == limit:
                    break
                if not self._move_if_exhausted(stored):
                    received.append(stored.handed_out(self._name, now, hidden_for))
            return received

    def delete(self, receipt: str) -> None:
        """See the port; an outdated receipt is ignored, as on AWS."""
        with self._call("DeleteMessage"):
            stored = self._held(receipt, "DeleteMessage")
            if stored is not None:
                del self._messages[stored.id]

    def backlog(self) -> Backlog:
        """See the port."""
        with self._call("GetQueueAttributes"):
            now = self._now()
            self._expire(now)
            visible = sum(stored.visible_at <= now for stored in self._messages.values())
            ages = [timedelta(milliseconds=now - stored.sent_at) for stored in self._aging()]
            return Backlog(visible=visible, oldest=max(ages, default=None))

    def redrive(self, to: "MemoryQueue | None" = None, *, limit: int | None = None) -> int:
        """Moves visible messages, the oldest first, as StartMessageMoveTask does; returns how many.

        Each becomes a new message: new id, new SentTimestamp, never received.

        Args:
            to: the target; None for the source queue of each message.
            limit: the number of messages after which the task is cancelled.

        Raises:
            Unavailable: a message has no source queue; those before it have been moved.
        """
        now = self._now()
        self._expire(now)
        moved = [s for s in self._messages.values() if s.visible_at <= now][:limit]
        for stored in moved:
            target = self._sources.get(stored.id.rpartition("-")[0]) if to is None else to
            if target is None:
                raise refusal("StartMessageMoveTask", "CouldNotDetermineMessageSource")
            del self._messages[stored.id]
            target._enqueue(Outgoing(stored.body, 0, stored.group, stored.id), 0)  # noqa: SLF001
        return len(moved)

    def __len__(self) -> int:
        """The number of messages, hidden and delayed ones included; no call, no fault."""
        self._expire(self._now())
        return len(self._messages)

    @property
    def bodies(self) -> list[str]:
        """The bodies of all messages, oldest first, for assertions; no call, no fault."""
        self._expire(self._now())
        return [stored.body for stored in self._messages.values()]

    def next_visible_at(self) -> int | None:
        """The time, in epoch ms, at which the next message is visible; None if it is empty."""
        self._expire(self._now())
        return min((stored.visible_at for stored in self._messages.values()), default=None)

    # -- for the simulation: no call, no fault

    def visible(self) -> list[str]:
        """Returns the ids of the messages that can be received now."""
        now = self._now()
        self._expire(now)
        return [stored.id for stored in self._messages.values() if stored.visible_at <= now]

    def take(self, id_: str, *, hidden_for: int) -> Message | None:
        """Receives this visible message; None if that moved it to the DLQ."""
        stored, now = self._messages[id_], self._now()
        return (
            None
            if self._move_if_exhausted(stored)
            else stored.handed_out(self._name, now, hidden_for)
        )

    def show(self, id_: str) -> None:
        """Makes a message visible at once: SQS may deliver a hidden message again."""
        self._messages[id_].visible_at = self._now()

    def lose(self, id_: str) -> None:
        """Removes a message, as at the end of its retention."""
        del self._messages[id_]

    def hops(self, id_: str) -> int:
        """Returns the length of the chain of invocations that sent a message."""
        return self._messages[id_].hops

    def snapshot(self) -> Snapshot:
        """Returns the state of the queue, for `restore`; equal for equal queues."""
        self._expire(self._now())
        messages = tuple([stored.fields() for stored in self._messages.values()])
        return self._sent, messages, tuple(self._remembered.items())

    def restore(self, snapshot: Snapshot) -> None:
        """Restores a state, as if its hidden messages had just been received."""
        self._sent, messages, remembered = snapshot
        now = self._now()
        self._messages = {fields[0]: Stored(*fields, received_at=now) for fields in messages}
        self._remembered = dict(remembered)

    def _available(self, now: int) -> list[Stored]:
        """Returns the messages that can be received, in their order."""
        self._expire(now)
        visible = [s for s in self._messages.values() if s.visible_at <= now]
        visible.sort(key=lambda stored: (stored.poison, stored.visible_at))
        return visible

    def _aging(self) -> Iterable[Stored]:
        """Returns the messages that ApproximateAgeOfOldestMessage covers."""
        return (stored for stored in self._messages.values() if not stored.poison)

    def _enqueue(self, message: Outgoing, hops: int) -> None:
        now = self._now()
        self._sent += 1
        id_ = f"{self._name}-{self._sent}"
        stored = Stored(id_, message.body, now, now + message.delay * 1000)
        stored.group, stored.hops = message.group, hops
        self._messages[id_] = stored

    def _adopt(self, stored: Stored) -> None:
        """Adds a message from a source queue; its age and count are unchanged."""
        self._messages[stored.id] = stored

    def _serve(self, source: "MemoryQueue") -> None:
        if source.fifo is not self.fifo:
            raise ValueError("a queue and its dead-letter queue are of the same kind")
        self._sources[source._name] = source  # noqa: SLF001 - its own class

    def _move_if_exhausted(self, stored: Stored) -> bool:
        # AWS moves a message at its next receive, not when its last one fails.
        if self._dead_letters is None or stored.receive_count < self._max_receive_count:
            return False
        del self._messages[stored.id]
        self._dead_letters._adopt(stored)  # noqa: SLF001 - its own class
        return True

    def _held(self, receipt: str, operation: str) -> Stored | None:
        """Returns the message with this receipt; None if the receipt is outdated."""
        if not receipt.startswith(f"{self._name}/"):
            raise refusal(operation, "ReceiptHandleIsInvalid")
        stored = self._messages.get(receipt[len(self._name) + 1 :].rpartition("/")[0])
        return stored if stored is not None and stored.receipt == receipt else None

    def _expire(self, now: int) -> None:
        # Moving to a DLQ does not restart the retention.
        ended = [s.id for s in self._messages.values() if s.sent_at + self._retention <= now]
        for id_ in ended:
            del self._messages[id_]

    def _now(self) -> int:
        return to_ms(self._clock.now())

    def _call(self, operation: str) -> FaultyCall:
        return FaultyCall(self.faults, "sqs", operation)


def refusal(operation: str, code: str) -> Unavailable:
    """Returns SQS's error of that code."""
    return Unavailable("sqs", operation, code)
