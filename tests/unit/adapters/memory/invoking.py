"""Mappings in memory, and what they receive."""

from typing import Any, Final

from webhook_inbox.adapters.memory import MemoryMapping, MemoryQueue
from webhook_inbox.adapters.memory.event_source_mapping import MappingBatch
from webhook_inbox.domain.ports import Outgoing
from webhook_inbox.ledger.deadlines import VISIBILITY_TIMEOUT
from webhook_inbox.queue.visibility import ceil_seconds

VISIBILITY: Final = ceil_seconds(VISIBILITY_TIMEOUT)


def mapping(queue: MemoryQueue, **settings: Any) -> MemoryMapping:
    """Returns a mapping of a queue whose visibility timeout is 6 minutes."""
    return MemoryMapping(queue, hidden_for=VISIBILITY, **settings)


def filled(queue: MemoryQueue, *bodies: str) -> MemoryQueue:
    """Returns the queue, with these messages in it."""
    assert queue.send([Outgoing(body) for body in bodies]) == []
    return queue


def polled(source: MemoryMapping) -> MappingBatch:
    """Returns the next invocation's batch; there has to be one."""
    batch = source.poll()
    assert batch is not None
    return batch
