"""The queue in memory: order, visibility, retention, and what only a simulation does."""

from datetime import timedelta

import pytest

from tests.unit.adapters.memory.receiving import receive
from webhook_inbox.adapters.memory import ManualClock, MemoryQueue
from webhook_inbox.domain.errors import Unavailable
from webhook_inbox.domain.ports import Backlog, Outgoing
from webhook_inbox.domain.quotas import HIDE_SECONDS


def test_a_message_that_was_received_three_times_comes_last(
    clock: ManualClock, patient: MemoryQueue
) -> None:
    """AWS moves such a message to the back of the queue, redrive policy or not.

    https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-available-cloudwatch-metrics.html
    """
    patient.send([Outgoing("old")])
    for expected in (["old", "new"], ["old", "new"], ["old", "new"], ["new", "old"]):
        clock.advance(seconds=1)
        patient.send([Outgoing("new")])
        received = patient.receive(10, hidden_for=0)
        assert [message.body for message in received] == expected
        patient.delete(next(m.receipt for m in received if m.body == "new"))


def test_a_backlog_is_as_old_as_what_was_received_less_than_three_times(
    clock: ManualClock, patient: MemoryQueue
) -> None:
    """AWS leaves a poison pill out of ApproximateAgeOfOldestMessage.

    https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-available-cloudwatch-metrics.html
    """
    patient.send([Outgoing("old")])
    clock.advance(minutes=5)
    patient.send([Outgoing("new", delay=60)])
    for _ in range(2):
        receive(patient, hidden_for=0)
    assert patient.backlog().oldest == timedelta(minutes=5)

    receive(patient, hidden_for=0)

    assert patient.backlog() == Backlog(visible=1, oldest=timedelta(0))


def test_without_dead_letters_a_message_comes_for_ever(clock: ManualClock) -> None:
    queue = MemoryQueue(clock, max_receive_count=1)
    queue.send([Outgoing("x")])

    counts = []
    for _ in range(5):
        counts.append(receive(queue, hidden_for=1).receive_count)
        clock.advance(seconds=1)

    assert counts == [1, 2, 3, 4, 5]


def test_a_message_ends_silently_with_its_retention(clock: ManualClock) -> None:
    """https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_DeleteMessage.html

    SQS deletes what is in a queue for longer than its retention period.
    """
    queue = MemoryQueue(clock, retention=timedelta(days=7))
    queue.send([Outgoing("x")])
    clock.advance(days=7, seconds=-1)
    assert len(queue) == 1

    clock.advance(seconds=1)

    assert len(queue) == 0
    assert queue.receive(1, hidden_for=1) == []
    assert queue.backlog() == Backlog(visible=0, oldest=None)


def test_visibility_ends_to_the_second(clock: ManualClock, work: MemoryQueue) -> None:
    work.send([Outgoing("x", delay=10)])
    clock.advance(seconds=9.999)
    assert work.receive(1, hidden_for=1) == []
    clock.advance(seconds=0.001)
    receive(work, hidden_for=30)
    clock.advance(seconds=29.999)
    assert work.receive(1, hidden_for=1) == []
    clock.advance(seconds=0.001)

    assert receive(work).receive_count == 2


def test_what_became_visible_first_is_received_first(clock: ManualClock, work: MemoryQueue) -> None:
    work.send([Outgoing("a", delay=3), Outgoing("b", delay=1), Outgoing("c"), Outgoing("d")])
    clock.advance(seconds=5)

    assert [message.body for message in work.receive(10, hidden_for=1)] == ["c", "d", "b", "a"]


def test_a_simulation_learns_when_something_comes(clock: ManualClock, work: MemoryQueue) -> None:
    assert work.next_visible_at() is None
    now = int(clock.now().timestamp() * 1000)
    work.send([Outgoing("a", delay=30), Outgoing("b", delay=20)])

    assert work.next_visible_at() == now + 20_000


def test_hiding_a_message_that_is_not_in_flight_is_refused(
    clock: ManualClock, work: MemoryQueue
) -> None:
    work.send([Outgoing("x")])
    message = receive(work, hidden_for=1)
    clock.advance(seconds=1)

    with pytest.raises(Unavailable, match="MessageNotInflight"):
        work.hide(message.receipt, 10)


def test_a_late_receipt_still_deletes_until_the_next_receive(
    clock: ManualClock, work: MemoryQueue
) -> None:
    work.send([Outgoing("x")])
    message = receive(work, hidden_for=1)
    clock.advance(seconds=9)

    work.delete(message.receipt)

    assert len(work) == 0


def test_the_backlogs_age_counts_from_the_first_sending(
    clock: ManualClock, work: MemoryQueue
) -> None:
    work.send([Outgoing("a")])
    clock.advance(minutes=5)
    work.send([Outgoing("b")])
    receive(work)

    assert work.backlog() == Backlog(visible=1, oldest=timedelta(minutes=5))


def test_a_message_in_flight_ends_with_its_retention_too(clock: ManualClock) -> None:
    queue = MemoryQueue(clock, retention=timedelta(hours=1))
    queue.send([Outgoing("x")])
    clock.advance(minutes=59)
    message = receive(queue, hidden_for=3600)

    clock.advance(minutes=1)

    assert queue.next_visible_at() is None
    assert queue.snapshot()[1] == ()
    queue.delete(message.receipt)


def test_entries_can_be_refused(work: MemoryQueue) -> None:
    work.refuses = lambda message: message.body == "b"

    assert work.send([Outgoing("a"), Outgoing("b"), Outgoing("c")]) == [Outgoing("b")]
    assert work.bodies == ["a", "c"]


# -- what only a simulation does


def test_a_simulation_takes_what_it_will_of_what_can_be_received(
    clock: ManualClock, work: MemoryQueue
) -> None:
    """https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/standard-queues.html

    A standard queue keeps the order of messages as well as it can, no better.
    """
    work.send([Outgoing("a"), Outgoing("b"), Outgoing("c", delay=5)])
    assert work.visible() == ["work-1", "work-2"]

    taken = work.take("work-2", hidden_for=60)

    assert taken is not None
    assert (taken.body, taken.receive_count) == ("b", 1)
    assert work.visible() == ["work-1"]
    clock.advance(seconds=5)
    assert work.visible() == ["work-1", "work-3"]


def test_taking_a_message_once_too_often_moves_it(work: MemoryQueue, dead: MemoryQueue) -> None:
    work.send([Outgoing("x")])
    for _ in range(2):
        assert work.take("work-1", hidden_for=0) is not None

    assert work.take("work-1", hidden_for=0) is None

    assert (len(work), dead.bodies) == (0, ["x"])


def test_a_message_in_flight_can_come_a_second_time(work: MemoryQueue) -> None:
    """https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/standard-queues-at-least-once-delivery.html

    A copy on a server that was not there is delivered again: at least once is not once.
    """
    work.send([Outgoing("x")])
    first = receive(work)

    work.show(first.id)

    second = receive(work)
    assert (second.id, second.receive_count) == (first.id, 2)


def test_a_message_can_be_lost(work: MemoryQueue) -> None:
    work.send([Outgoing("x"), Outgoing("y")])

    work.lose("work-1")

    assert work.bodies == ["y"]


def test_a_queue_can_be_put_back(clock: ManualClock, work: MemoryQueue, dead: MemoryQueue) -> None:
    work.send([Outgoing("a"), Outgoing("b")], hops=3)
    held = receive(work)
    before = work.snapshot()

    work.delete(held.receipt)
    work.send([Outgoing("c")])
    receive(work)
    work.restore(before)

    assert work.snapshot() == before
    assert work.bodies == ["a", "b"]
    assert work.hops("work-1") == 3
    work.hide(held.receipt, 0)
    assert receive(work).id == held.id
    work.send([Outgoing("d")])
    assert work.visible() == ["work-2", "work-3"]


def test_queues_are_equal_whenever_what_is_hidden_was_received(clock: ManualClock) -> None:
    """A simulation would explore all that follows once for every such moment."""
    found = []
    for pause in (1, 2):
        own = ManualClock(clock.now())
        queue = MemoryQueue(own)
        queue.send([Outgoing("x")])
        own.sleep(pause)
        queue.hide(receive(queue).receipt, 3 - pause)
        found.append(queue.snapshot())

    assert found[0] == found[1]


def test_a_queue_that_was_put_back_counts_the_12_hours_anew(
    clock: ManualClock, work: MemoryQueue
) -> None:
    work.send([Outgoing("x")])
    held = receive(work, hidden_for=HIDE_SECONDS)
    clock.advance(hours=1)
    with pytest.raises(Unavailable, match="InvalidParameterValue"):
        work.hide(held.receipt, HIDE_SECONDS)

    work.restore(work.snapshot())

    work.hide(held.receipt, HIDE_SECONDS)
