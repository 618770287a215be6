"""The queue in memory: its dead letters, and SQS's own redrive of them."""

import pytest

from tests.unit.adapters.memory.receiving import exhaust, receive
from webhook_inbox.adapters.memory import ManualClock, MemoryFifo, MemoryQueue
from webhook_inbox.domain.errors import Unavailable
from webhook_inbox.domain.ports import Outgoing


def test_a_redriven_message_is_a_new_message(
    clock: ManualClock, work: MemoryQueue, dead: MemoryQueue
) -> None:
    """AWS: a redriven message gets a new messageID and enqueueTime, its retention is reset.

    https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-configure-dead-letter-queue-redrive.html
    """
    work.send([Outgoing("x")])
    first = exhaust(work)
    assert (len(work), len(dead)) == (0, 1)
    clock.advance(hours=1)

    assert dead.redrive(work) == 1

    again = receive(work)
    assert (len(work), len(dead)) == (1, 0)
    assert again.body == first.body
    assert again.id != first.id
    assert again.sent_at == clock.now() > first.sent_at
    assert again.receive_count == 1


def test_a_redrive_moves_as_many_as_it_is_told_and_no_hidden_ones(
    work: MemoryQueue, dead: MemoryQueue
) -> None:
    """A redrive does not see messages in flight; it receives as any consumer does."""
    dead.send([Outgoing(letter) for letter in "abcd"])
    receive(dead)

    assert dead.redrive(work, limit=2) == 2
    assert (work.bodies, dead.bodies) == (["b", "c"], ["a", "d"])
    assert dead.redrive(work) == 1
    assert dead.bodies == ["a"]


def test_moving_to_the_dead_letters_does_not_restart_retention(
    clock: ManualClock, work: MemoryQueue, dead: MemoryQueue
) -> None:
    """AWS: on standard queues the enqueue timestamp is unchanged by the move.

    https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/setting-up-dead-letter-queue-retention.html
    """
    work.send([Outgoing("x")])
    clock.advance(days=6)
    first = exhaust(work)

    clock.advance(days=8, seconds=-1)
    assert receive(dead, hidden_for=1).sent_at == first.sent_at
    clock.advance(seconds=1)
    assert len(dead) == 0


def test_a_redrive_restarts_retention(
    clock: ManualClock, work: MemoryQueue, dead: MemoryQueue
) -> None:
    work.send([Outgoing("x")])
    clock.advance(days=6)
    exhaust(work)

    dead.redrive(work)
    clock.advance(days=6)

    assert len(work) == 1


def test_a_message_goes_to_the_dead_letters_when_received_and_not_before(
    clock: ManualClock, work: MemoryQueue, dead: MemoryQueue
) -> None:
    """AWS: it moves when its ReceiveCount exceeds maxReceiveCount.

    https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-dead-letter-queues.html
    """
    work.send([Outgoing("x")])
    receive(work, hidden_for=5)
    clock.advance(seconds=5)
    receive(work, hidden_for=5)
    clock.advance(days=1)
    assert (len(work), len(dead)) == (1, 0)

    work.receive(1, hidden_for=5)

    assert (len(work), len(dead)) == (0, 1)


def test_what_has_died_goes_back_to_where_it_died(clock: ManualClock, dead: MemoryQueue) -> None:
    """AWS: without a destination a task moves messages back to their source queues.

    https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_StartMessageMoveTask.html
    """
    lanes = [
        MemoryQueue(clock, name=name, dead_letters=dead, max_receive_count=1)
        for name in ("default", "slow-lane")
    ]
    for lane in lanes:
        lane.send([Outgoing("x"), Outgoing("y")])
        exhaust_all(lane)

    assert dead.redrive() == 4

    assert [lane.bodies for lane in lanes] == [["x", "y"]] * 2


def exhaust_all(queue: MemoryQueue) -> None:
    """Receives everything twice, where once is allowed."""
    for message in queue.receive(10, hidden_for=60):
        queue.hide(message.receipt, 0)
    assert queue.receive(10, hidden_for=60) == []


def test_a_message_sent_to_the_dead_letters_by_hand_ends_their_way_back(
    work: MemoryQueue, dead: MemoryQueue
) -> None:
    """AWS: the task fails; a custom destination moves such a message too.

    https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/troubleshooting-dlq-redrive.html
    """
    for body in ("first", "second"):
        work.send([Outgoing(body)])
        exhaust(work)
        if body == "first":
            dead.send([Outgoing("by hand")])

    with pytest.raises(Unavailable, match="CouldNotDetermineMessageSource"):
        dead.redrive()

    assert (work.bodies, dead.bodies) == (["first"], ["by hand", "second"])
    assert dead.redrive(work) == 2
    assert work.bodies == ["first", "by hand", "second"]


def test_a_message_may_die_again_and_go_back_again(work: MemoryQueue, dead: MemoryQueue) -> None:
    work.send([Outgoing("x")])
    for _ in range(3):
        exhaust(work)
        assert dead.redrive() == 1

    assert receive(work).receive_count == 1


def test_a_redrive_is_of_the_oldest_first(work: MemoryQueue, dead: MemoryQueue) -> None:
    """https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-configure-dead-letter-queue-redrive.html

    Messages are redriven in the order in which the dead-letter queue received them.
    """
    for body in "abc":
        work.send([Outgoing(body)])
        exhaust(work)

    dead.redrive(limit=2)

    assert (work.bodies, dead.bodies) == (["a", "b"], ["c"])


def test_dead_letters_are_of_their_queues_kind(clock: ManualClock) -> None:
    """https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-dead-letter-queues.html

    The dead-letter queue of a FIFO queue is a FIFO queue, of a standard queue a standard one.
    """
    with pytest.raises(ValueError, match="kind"):
        MemoryQueue(clock, dead_letters=MemoryFifo(clock, name="dead"))
    with pytest.raises(ValueError, match="kind"):
        MemoryFifo(clock, dead_letters=MemoryQueue(clock, name="dead"))
