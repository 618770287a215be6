"""Lambda's event source mapping of a queue: what becomes of the messages it receives."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

from webhook_inbox.adapters.memory.queue import MemoryQueue
from webhook_inbox.domain.errors import Unavailable
from webhook_inbox.domain.ports import Backlog, Message, Outgoing

# After so many invocations in one chain Lambda stops the next; AWS says "approximately".
RECURSIONS: Final = 16


def kept(messages: Sequence[Message], answer: Any) -> list[Message]:
    """Returns the messages of a batch that stay in the queue, given what the function returned.

    An answer that names no failures is a success; one that cannot be read, or that names what is
    not in the batch, fails all of it.

    https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-errorhandling.html
    """
    match answer:
        case None | {"batchItemFailures": None}:
            return []
        case {"batchItemFailures": [*failures]}:
            named = [_identifier(failure) for failure in failures]
            if {message.id for message in messages}.issuperset(named):
                return [message for message in messages if message.id in named]
            return list(messages)
        case Mapping() if "batchItemFailures" not in answer:
            return []
        case _:
            return list(messages)


def _identifier(failure: Any) -> str:
    """Returns the message id that an entry names; "", which is nobody's, if it names none."""
    found = failure.get("itemIdentifier") if isinstance(failure, Mapping) else None
    return found if isinstance(found, str) else ""


@dataclass(frozen=True, slots=True)
class MappingBatch:
    """One invocation's messages, and how many invocations will have led to what it sends."""

    messages: tuple[Message, ...]
    hops: int


class Onward:
    """A queue as a function reaches it: what it sends goes on with the chain that invoked it."""

    def __init__(self, queue: MemoryQueue, hops: int) -> None:
        self._queue = queue
        self._hops = hops

    @property
    def fifo(self) -> bool:
        """See the port."""
        return self._queue.fifo

    def send(self, messages: Sequence[Outgoing]) -> Sequence[Outgoing]:
        """See the port."""
        return self._queue.send(messages, hops=self._hops)

    def hide(self, receipt: str, seconds: int) -> None:
        """See the port."""
        self._queue.hide(receipt, seconds)

    def receive(self, limit: int, *, hidden_for: int) -> Sequence[Message]:
        """See the port."""
        return self._queue.receive(limit, hidden_for=hidden_for)

    def delete(self, receipt: str) -> None:
        """See the port."""
        self._queue.delete(receipt)

    def backlog(self) -> Backlog:
        """See the port."""
        return self._queue.backlog()


class MemoryMapping:
    """Receives batches, and deletes what the function has dealt with.

    Each batch of `poll` is handed to `finish` or `fail`; several can be under way.
    `throttled` and `stopped` count the batches that were received in vain: the messages stay
    hidden, and the receive counts.

    Args:
        queue: where the messages come from.
        hidden_for: the queue's visibility timeout, in seconds.
        batch_size: how many messages an invocation gets, 1-10.
        max_concurrency: how many invocations there are at once, 2-1000; no more is received.
        reserved_concurrency: of how many Lambda throttles the next; more is received.
        reports_failures: whether the function may answer for single messages.
        recursion_allowed: whether the function's `RecursiveLoop` is `Allow`.
    """

    def __init__(
        self,
        queue: MemoryQueue,
        *,
        hidden_for: int,
        batch_size: int = 1,
        max_concurrency: int = 1000,
        reserved_concurrency: int | None = None,
        reports_failures: bool = True,
        recursion_allowed: bool = False,
    ) -> None:
        if not 2 <= max_concurrency <= 1000:
            raise ValueError("a mapping's maximum concurrency is 2 to 1000")
        self.running = self.throttled = self.stopped = 0
        self._queue = queue
        self._hidden_for = hidden_for
        self._batch_size = batch_size
        self._max_concurrency = max_concurrency
        self._reserved = max_concurrency if reserved_concurrency is None else reserved_concurrency
        self._reports_failures = reports_failures
        self._recursion_allowed = recursion_allowed

    def poll(self) -> MappingBatch | None:
        """Receives the next invocation's batch; None if there is no invocation."""
        if self.running >= self._max_concurrency:
            return None
        messages: Sequence[Message] = ()
        with suppress(Unavailable):
            messages = self._queue.receive(self._batch_size, hidden_for=self._hidden_for)
        if not messages:
            return None
        hops = max(self._queue.hops(message.id) for message in messages)
        if hops >= RECURSIONS and not self._recursion_allowed:
            self.stopped += 1
        elif self.running >= self._reserved:
            self.throttled += 1
        else:
            self.running += 1
            return MappingBatch(tuple(messages), hops + 1)
        return None

    def finish(self, batch: MappingBatch, answer: Any) -> None:
        """The function returned: what it does not keep is deleted; what it does stays hidden."""
        self.running -= 1
        stays = kept(batch.messages, answer) if self._reports_failures else ()
        for message in batch.messages:
            if message not in stays:
                # Nobody hears of a deletion that failed: the message comes back.
                with suppress(Unavailable):
                    self._queue.delete(message.receipt)

    def fail(self, _: MappingBatch) -> None:
        """The function raised, ran out of time or died: all of the batch stays hidden."""
        self.running -= 1
