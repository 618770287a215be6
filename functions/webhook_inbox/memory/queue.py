"""SQS standard queues in memory."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from webhook_inbox.errors import Unavailable
from webhook_inbox.instants import from_ms, to_ms
from webhook_inbox.limits import DELAY_SECONDS, HIDE_SECONDS, SEND_BATCH, sendable
from webhook_inbox.memory.faults import Call, Faults, no_faults
from webhook_inbox.ports import Backlog, Clock, Message, Outgoing

WEEK: Final = timedelta(days=7)


@dataclass(slots=True)
class _Stored:
    id: str
    body: str
    sent_at: int
    visible_at: int
    receive_count: int = 0
    receipt: str = ""


# How many messages were ever sent, and each that is there, field by field.
Snapshot = tuple[int, tuple[tuple[str, str, int, int, int, str], ...]]


def _refuses_none(_: Outgoing) -> bool:
    return False


class MemoryQueue:
    """A standard queue: at least once, out of order after a failure, redriven by receive count.

    Args:
        clock: what visibility, delay and retention are judged by.
        name: the first part of its messages' ids; unique among queues that share a DLQ.
        dead_letters: where messages go that were received too often.
        max_receive_count: how often a message is received before it goes there, 1-1000.
        retention: from its first sending to a message's silent end, DLQ included.
        faults: which calls fail, and when.
        refuses: which entries of a batch the queue does not take, as it may any.
    """

    def __init__(
        self,
        clock: Clock,
        *,
        name: str = "queue",
        dead_letters: "MemoryQueue | None" = None,
        max_receive_count: int = 13,
        retention: timedelta = WEEK,
        faults: Faults = no_faults,
        refuses: Callable[[Outgoing], bool] = _refuses_none,
    ) -> None:
        self.faults = faults
        self.refuses = refuses
        self._clock = clock
        self._name = name
        self._dead_letters = dead_letters
        self._max_receive_count = max_receive_count
        self._retention = retention // timedelta(milliseconds=1)
        self._messages: dict[str, _Stored] = {}
        self._sent = 0

    def send(self, messages: Sequence[Outgoing]) -> Sequence[Outgoing]:
        """See the port."""
        refused: list[Outgoing] = []
        for start in range(0, len(messages), SEND_BATCH):
            with self._call("SendMessageBatch"):
                for message in messages[start : start + SEND_BATCH]:
                    if self._takes(message):
                        self._enqueue(message.body, delay=message.delay)
                    else:
                        refused.append(message)
        return refused

    def hide(self, receipt: str, seconds: int) -> None:
        """See the port."""
        with self._call("ChangeMessageVisibility"):
            if not 0 <= seconds <= HIDE_SECONDS:
                raise self._invalid("InvalidParameterValue: VisibilityTimeout")
            stored, now = self._held(receipt), self._now()
            if stored is None:
                raise self._invalid("InvalidParameterValue: ReceiptHandle")
            if stored.visible_at <= now:
                raise self._invalid("MessageNotInflight")
            stored.visible_at = now + seconds * 1000

    def receive(self, limit: int, *, hidden_for: int) -> Sequence[Message]:
        """See the port."""
        with self._call("ReceiveMessage"):
            now = self._now()
            return [
                self._hand_out(stored, now + hidden_for * 1000)
                for stored in self._available(now)[:limit]
            ]

    def delete(self, receipt: str) -> None:
        """See the port; an outdated receipt deletes nothing and is no error, as on AWS."""
        with self._call("DeleteMessage"):
            stored = self._held(receipt)
            if stored is not None:
                del self._messages[stored.id]

    def backlog(self) -> Backlog:
        """See the port."""
        with self._call("GetQueueAttributes"):
            now = self._now()
            self._expire(now)
            sent = [stored.sent_at for stored in self._messages.values()]
            visible = sum(stored.visible_at <= now for stored in self._messages.values())
            oldest = timedelta(milliseconds=now - min(sent)) if sent else None
            return Backlog(visible=visible, oldest=oldest)

    def redrive(self, to: "MemoryQueue", *, limit: int | None = None) -> int:
        """Moves visible messages as StartMessageMoveTask does; returns how many.

        Each becomes a new message: new id, new SentTimestamp, never received. A message that
        was sent to this queue by hand is moved too, where AWS would give up.
        """
        now = self._now()
        self._expire(now)
        moved = [s for s in self._messages.values() if s.visible_at <= now][:limit]
        for stored in moved:
            del self._messages[stored.id]
            to._enqueue(stored.body, delay=0)  # noqa: SLF001 - its own class
        return len(moved)

    def __len__(self) -> int:
        """How many messages it holds, hidden and delayed ones included; no call, no fault."""
        self._expire(self._now())
        return len(self._messages)

    @property
    def bodies(self) -> list[str]:
        """The bodies of all it holds, oldest first, for assertions; no call, no fault."""
        self._expire(self._now())
        return [stored.body for stored in self._messages.values()]

    def next_visible_at(self) -> int | None:
        """When something can be received, in epoch ms; a simulation advances its clock to it."""
        return min((stored.visible_at for stored in self._messages.values()), default=None)

    # -- what only a simulation does: no call, no fault

    def visible(self) -> list[str]:
        """Returns the ids of the messages that can be received now."""
        now = self._now()
        self._expire(now)
        return [stored.id for stored in self._messages.values() if stored.visible_at <= now]

    def take(self, id_: str, *, hidden_for: int) -> Message | None:
        """Receives this visible message, whatever came first; None if that moved it to the DLQ."""
        stored, now = self._messages[id_], self._now()
        return None if self._bury(stored) else self._hand_out(stored, now + hidden_for * 1000)

    def show(self, id_: str) -> None:
        """Makes a message visible at once: at least once is not once, even while it is hidden."""
        self._messages[id_].visible_at = self._now()

    def lose(self, id_: str) -> None:
        """Takes a message away, as a queue does whose retention is over."""
        del self._messages[id_]

    def snapshot(self) -> Snapshot:
        """Returns all there is to know of the queue, for `restore`; equal where queues are."""
        return self._sent, tuple(
            (s.id, s.body, s.sent_at, s.visible_at, s.receive_count, s.receipt)
            for s in self._messages.values()
        )

    def restore(self, snapshot: Snapshot) -> None:
        """Makes the queue what it was."""
        self._sent, messages = snapshot
        self._messages = {message[0]: _Stored(*message) for message in messages}

    def _available(self, now: int) -> list[_Stored]:
        self._expire(now)
        visible = [s for s in self._messages.values() if s.visible_at <= now]
        visible.sort(key=lambda stored: stored.visible_at)
        return [stored for stored in visible if not self._bury(stored)]

    def _bury(self, stored: _Stored) -> bool:
        # AWS moves a message when it would be received once more, not when its last try fails.
        if self._dead_letters is None or stored.receive_count < self._max_receive_count:
            return False
        self._messages.pop(stored.id)
        self._dead_letters._messages[stored.id] = stored  # noqa: SLF001 - its own class
        return True

    def _hand_out(self, stored: _Stored, visible_at: int) -> Message:
        stored.receive_count += 1
        stored.visible_at = visible_at
        stored.receipt = f"{stored.id}/{stored.receive_count}"
        return Message(
            id=stored.id,
            receipt=stored.receipt,
            body=stored.body,
            sent_at=from_ms(stored.sent_at),
            receive_count=stored.receive_count,
        )

    def _enqueue(self, body: str, *, delay: int) -> None:
        now = self._now()
        self._sent += 1
        id_ = f"{self._name}-{self._sent}"
        self._messages[id_] = _Stored(id_, body, now, now + delay * 1000)

    def _takes(self, message: Outgoing) -> bool:
        fits = sendable(message.body) and 0 <= message.delay <= DELAY_SECONDS
        return fits and not self.refuses(message)

    def _held(self, receipt: str) -> _Stored | None:
        stored = self._messages.get(receipt.rpartition("/")[0])
        return stored if stored is not None and stored.receipt == receipt else None

    def _expire(self, now: int) -> None:
        # A DLQ counts from the first sending too: moving there does not restart retention.
        ended = [s.id for s in self._messages.values() if s.sent_at + self._retention <= now]
        for id_ in ended:
            del self._messages[id_]

    def _now(self) -> int:
        return to_ms(self._clock.now())

    def _call(self, operation: str) -> Call:
        return Call(self.faults, "sqs", operation)

    @staticmethod
    def _invalid(text: str) -> Unavailable:
        return Unavailable("sqs", "ChangeMessageVisibility", text)
