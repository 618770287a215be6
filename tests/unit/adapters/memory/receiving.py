"""Receiving from queues in memory, which are never empty by accident."""

from webhook_inbox.adapters.memory import MemoryQueue
from webhook_inbox.domain.ports import Message


def receive(queue: MemoryQueue, *, hidden_for: int = 60) -> Message:
    """Returns the next message; there has to be one."""
    [message] = queue.receive(1, hidden_for=hidden_for)
    return message


def exhaust(queue: MemoryQueue, *, times: int = 2) -> Message:
    """Receives the only message so often, and once more in vain; returns it as it first came."""
    received = []
    for _ in range(times):
        received.append(receive(queue))
        queue.hide(received[-1].receipt, 0)
    assert queue.receive(1, hidden_for=60) == []
    return received[0]
