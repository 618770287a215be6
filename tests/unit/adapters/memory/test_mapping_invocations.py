"""The event source mapping in memory: when the function is invoked, and when it is not."""

import pytest

from tests.unit.adapters.memory.invoking import VISIBILITY, filled, mapping, polled
from webhook_inbox.adapters.memory import ManualClock, MemoryFifo, MemoryMapping, MemoryQueue
from webhook_inbox.adapters.memory.event_source_mapping import RECURSIONS
from webhook_inbox.domain.ports import Outgoing


def test_no_more_is_received_than_the_maximum_concurrency(work: MemoryQueue) -> None:
    """https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-scaling.html

    The setting limits how many instances of the function a queue invokes at once.
    """
    source = mapping(filled(work, *"abc"), max_concurrency=2)
    first, _ = polled(source), polled(source)

    assert source.poll() is None
    assert work.backlog().visible == 1
    assert source.throttled == 0

    source.finish(first, None)
    assert polled(source).messages[0].receive_count == 1


@pytest.mark.parametrize("number", [1, 1001])
def test_a_maximum_concurrency_is_2_to_1000(work: MemoryQueue, number: int) -> None:
    """https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-scaling.html"""
    with pytest.raises(ValueError, match="2 to 1000"):
        mapping(work, max_concurrency=number)


def test_a_throttled_receive_costs_a_receive(
    clock: ManualClock, work: MemoryQueue, dead: MemoryQueue
) -> None:
    """https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-errorhandling.html

    Lambda tries a throttled message again until its visibility timeout, and drops it then: it
    comes back received, and reaches the DLQ without the function having seen it.
    """
    source = mapping(filled(work, "a"), reserved_concurrency=0)

    for _ in range(3):
        assert source.poll() is None
        assert work.backlog().visible == 0
        clock.advance(seconds=VISIBILITY)

    assert source.throttled == 2
    assert (len(work), len(dead)) == (0, 1)


def chain(clock: ManualClock, queue: MemoryQueue, source: MemoryMapping) -> int:
    """Invokes a function that sends its message again; returns how often, up to 50 times."""
    for number in range(50):
        batch = source.poll()
        if batch is None:
            return number
        queue.send([Outgoing("again", delay=1)], hops=batch.hops)
        source.finish(batch, None)
        clock.advance(seconds=1)
    return 50


def test_a_chain_of_sixteen_invocations_is_stopped(clock: ManualClock, dead: MemoryQueue) -> None:
    """https://docs.aws.amazon.com/lambda/latest/dg/invocation-recursion.html

    After about 16 invocations in one chain Lambda stops the next. The mapping gets an error,
    the message's receive count grows, and Lambda blocks it until it is in the DLQ.
    """
    queue = MemoryQueue(clock, name="work", dead_letters=dead, max_receive_count=3)
    source = mapping(filled(queue, "first"))

    assert chain(clock, queue, source) == RECURSIONS == 16

    for _ in range(3):
        clock.advance(seconds=VISIBILITY)
        assert source.poll() is None
    assert source.stopped == 3
    assert dead.bodies == ["again"]


def test_a_chain_goes_on_where_recursion_is_allowed(clock: ManualClock, work: MemoryQueue) -> None:
    """https://docs.aws.amazon.com/lambda/latest/dg/invocation-recursion.html

    Lambda takes no action on a loop of a function whose RecursiveLoop is Allow.
    """
    source = mapping(filled(work, "first"), recursion_allowed=True)

    assert chain(clock, work, source) == 50


def test_a_message_that_comes_back_is_no_longer_chain(
    clock: ManualClock, patient: MemoryQueue
) -> None:
    """A chain is of messages that were sent, not of receives of one of them."""
    source = mapping(filled(patient, "a"))

    for _ in range(20):
        source.fail(polled(source))
        clock.advance(seconds=VISIBILITY)

    assert source.stopped == 0


def test_a_redriven_message_begins_a_new_chain(clock: ManualClock, dead: MemoryQueue) -> None:
    queue = MemoryQueue(clock, name="work", dead_letters=dead, max_receive_count=1)
    source = mapping(filled(queue, "first"))
    chain(clock, queue, source)
    clock.advance(seconds=VISIBILITY)
    assert source.poll() is None

    dead.redrive()

    assert polled(source).hops == 1


def test_a_fifo_group_waits_for_its_failed_message(clock: ManualClock) -> None:
    """https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-scaling.html

    All retries of a failed message come before Lambda receives more of its group.
    """
    queue = MemoryFifo(clock)
    queue.send([Outgoing(body, group=body[0], dedup=body) for body in ("a1", "a2", "b1")])
    source = mapping(queue)

    source.fail(polled(source))
    assert polled(source).messages[0].body == "b1"
    assert source.poll() is None
    clock.advance(seconds=VISIBILITY)

    assert polled(source).messages[0].body == "a1"
