"""Lambda's event source mapping of a queue."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

from webhook_inbox.adapters.memory.queue import MemoryQueue
from webhook_inbox.domain.errors import Unavailable
from webhook_inbox.domain.ports import Message

# Lambda stops a chain of invocations after "approximately" this number.
RECURSIONS: Final = 16


def kept(messages: Sequence[Message], answer: Any) -> list[Message]:
    """Returns the messages of a batch that stay in the queue, given what the function returned.

    An answer without failures is a success; one that is invalid, or that names a message outside
    the batch, fails the whole batch.

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
    """Returns the message id of an entry; "", which no message has, if it has none."""
    found = failure.get("itemIdentifier") if isinstance(failure, Mapping) else None
    return found if isinstance(found, str) else ""


@dataclass(frozen=True, slots=True)
class MappingBatch:
    """One invocation's messages, and the length of its chain of invocations."""

    messages: tuple[Message, ...]
    hops: int


class MemoryMapping:
    """Receives batches, and deletes the messages that the function has processed.

    Each batch of `poll` ends with `finish` or `fail`; several can be in progress. `throttled` and
    `stopped` count batches without an invocation: the messages stay hidden, and the receive counts.

    Args:
        queue: the queue.
        hidden_for: the queue's visibility timeout, in seconds.
        batch_size: the messages per invocation, 1-10.
        max_concurrency: the limit of simultaneous invocations, 2-1000; no more is received.
        reserved_concurrency: the limit above which Lambda throttles; more is received.
        reports_failures: whether the function reports failures of single messages.
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
        """Receives the next invocation's batch; returns None without an invocation."""
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
        """Handles a function's result: deletes all messages but the failed ones."""
        self.running -= 1
        stays = kept(batch.messages, answer) if self._reports_failures else ()
        for message in batch.messages:
            if message not in stays:
                # A failed deletion is not reported: the message becomes visible again.
                with suppress(Unavailable):
                    self._queue.delete(message.receipt)

    def fail(self, _: MappingBatch) -> None:
        """Handles an error, time-out or crash: the whole batch stays hidden."""
        self.running -= 1
