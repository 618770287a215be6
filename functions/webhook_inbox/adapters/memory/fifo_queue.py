"""SQS FIFO queues in memory."""

from collections.abc import Iterable, Sequence
from itertools import chain
from typing import ClassVar, Final

from webhook_inbox.adapters.memory.queue import MemoryQueue, Stored, refusal
from webhook_inbox.domain.ports import Outgoing
from webhook_inbox.domain.quotas import batches, takes

DEDUPLICATION_MS: Final = 5 * 60 * 1000


class MemoryFifo(MemoryQueue):
    """A FIFO queue: each group in order, and no message of a group with one in flight.

    It accepts messages with a group and a deduplication id and without a delay; the retention of
    one that moves to its DLQ starts again.
    """

    fifo: ClassVar[bool] = True

    def send(self, messages: Sequence[Outgoing], *, hops: int = 0) -> Sequence[Outgoing]:
        """See a standard queue and the port."""
        unfit = [message for message in messages if not takes(message, fifo=True)]
        waiting = list(batches([message for message in messages if takes(message, fifo=True)]))
        while waiting:
            if refused := super().send(waiting.pop(0), hops=hops):
                return [*unfit, *refused, *chain.from_iterable(waiting)]
        return unfit

    def delete(self, receipt: str) -> None:
        """See the port; a receipt is valid only while its message is hidden."""
        with self._call("DeleteMessage"):
            stored = self._held(receipt, "DeleteMessage")
            if stored is None:
                return
            if stored.visible_at <= self._now():
                raise refusal("DeleteMessage", "InvalidParameterValue: the receipt has expired")
            del self._messages[stored.id]

    def next_visible_at(self) -> int | None:
        """See a standard queue; a group's next message is visible when none is in flight."""
        free_at = [max(stored.visible_at for stored in group) for group in self._groups()]
        return min(free_at, default=None)

    def visible(self) -> list[str]:
        """Returns the ids of the messages that can be received now: the first of each group."""
        return [group[0].id for group in self._free(self._now())]

    def _available(self, now: int) -> list[Stored]:
        # As many messages of one group as possible, as SQS does.
        return list(chain.from_iterable(self._free(now)))

    def _free(self, now: int) -> list[list[Stored]]:
        return [group for group in self._groups() if all(s.visible_at <= now for s in group)]

    def _groups(self) -> Iterable[list[Stored]]:
        """Returns the messages by group, in the order in which they were sent."""
        self._expire(self._now())
        groups: dict[str, list[Stored]] = {}
        for stored in self._messages.values():
            groups.setdefault(stored.group, []).append(stored)
        return groups.values()

    def _aging(self) -> Iterable[Stored]:
        return self._messages.values()

    def _enqueue(self, message: Outgoing, hops: int) -> None:
        # A duplicate is accepted and not delivered.
        self._expire(self._now())
        if message.dedup not in self._remembered:
            self._remembered[message.dedup] = self._now()
            super()._enqueue(message, hops)

    def _adopt(self, stored: Stored) -> None:
        stored.sent_at = self._now()
        # Its message id replaces its deduplication id: two messages may have the same.
        self._remembered[stored.id] = stored.sent_at
        super()._adopt(stored)

    def _expire(self, now: int) -> None:
        super()._expire(now)
        while self._remembered:
            dedup, sent_at = next(iter(self._remembered.items()))
            if sent_at + DEDUPLICATION_MS > now:
                return
            del self._remembered[dedup]
