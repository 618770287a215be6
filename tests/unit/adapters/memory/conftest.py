"""A work queue and its DLQ, in memory."""

from datetime import timedelta

import pytest

from webhook_inbox.adapters.memory import ManualClock, MemoryQueue


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def dead(clock: ManualClock) -> MemoryQueue:
    return MemoryQueue(clock, name="dead", retention=timedelta(days=14))


@pytest.fixture
def work(clock: ManualClock, dead: MemoryQueue) -> MemoryQueue:
    """A queue that allows two receives."""
    return MemoryQueue(clock, name="work", dead_letters=dead, max_receive_count=2)


@pytest.fixture
def patient(clock: ManualClock) -> MemoryQueue:
    """A queue without dead letters."""
    return MemoryQueue(clock)
