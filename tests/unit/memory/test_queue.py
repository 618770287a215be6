"""The queue in memory: redrive, retention, faults."""

from datetime import timedelta
from typing import Any

import pytest

from webhook_inbox.errors import Unavailable
from webhook_inbox.memory import Fault, ManualClock, MemoryQueue
from webhook_inbox.ports import Backlog, Message, Outgoing


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def dead(clock: ManualClock) -> MemoryQueue:
    return MemoryQueue(clock, name="dead", retention=timedelta(days=14))


@pytest.fixture
def work(clock: ManualClock, dead: MemoryQueue) -> MemoryQueue:
    return MemoryQueue(clock, name="work", dead_letters=dead, max_receive_count=2)


def receive(queue: MemoryQueue, *, hidden_for: int = 60) -> Message:
    [message] = queue.receive(1, hidden_for=hidden_for)
    return message


def exhaust(work: MemoryQueue) -> Message:
    """Receives the only message as often as it may be, and once more; returns the first."""
    first = receive(work, hidden_for=60)
    work.hide(first.receipt, 0)
    work.hide(receive(work).receipt, 0)
    assert work.receive(1, hidden_for=60) == []
    return first


def test_a_redriven_message_is_a_new_message(
    clock: ManualClock, work: MemoryQueue, dead: MemoryQueue
) -> None:
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
    dead.send([Outgoing(letter) for letter in "abcd"])
    receive(dead)

    assert dead.redrive(work, limit=2) == 2
    assert (work.bodies, dead.bodies) == (["b", "c"], ["a", "d"])
    assert dead.redrive(work) == 1
    assert dead.bodies == ["a"]


def test_a_message_goes_to_the_dead_letters_when_received_and_not_before(
    clock: ManualClock, work: MemoryQueue, dead: MemoryQueue
) -> None:
    work.send([Outgoing("x")])
    receive(work, hidden_for=5)
    clock.advance(seconds=5)
    receive(work, hidden_for=5)
    clock.advance(days=1)
    assert (len(work), len(dead)) == (1, 0)

    work.receive(1, hidden_for=5)

    assert (len(work), len(dead)) == (0, 1)


def test_without_dead_letters_a_message_comes_for_ever(clock: ManualClock) -> None:
    queue = MemoryQueue(clock, max_receive_count=1)
    queue.send([Outgoing("x")])

    counts = []
    for _ in range(5):
        counts.append(receive(queue, hidden_for=1).receive_count)
        clock.advance(seconds=1)

    assert counts == [1, 2, 3, 4, 5]


def test_a_message_ends_silently_with_its_retention(clock: ManualClock) -> None:
    queue = MemoryQueue(clock, retention=timedelta(days=7))
    queue.send([Outgoing("x")])
    clock.advance(days=7, seconds=-1)
    assert len(queue) == 1

    clock.advance(seconds=1)

    assert len(queue) == 0
    assert queue.receive(1, hidden_for=1) == []
    assert queue.backlog() == Backlog(visible=0, oldest=None)


def test_moving_to_the_dead_letters_does_not_restart_retention(
    clock: ManualClock, work: MemoryQueue, dead: MemoryQueue
) -> None:
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


def test_a_receipt_of_another_queue_is_refused(work: MemoryQueue, dead: MemoryQueue) -> None:
    """Also of the DLQ: a message that has moved there is no longer this queue's.

    https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_DeleteMessage.html
    lists ReceiptHandleIsInvalid for a receipt that is none of the queue's.
    """
    dead.send([Outgoing("x")])
    for receipt in ("", "work-1", "work-1/1", "nonsense", receive(dead).receipt):
        with pytest.raises(Unavailable, match="ReceiptHandleIsInvalid"):
            work.hide(receipt, 1)
        with pytest.raises(Unavailable, match="ReceiptHandleIsInvalid"):
            work.delete(receipt)


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


def test_entries_can_be_refused(work: MemoryQueue) -> None:
    work.refuses = lambda message: message.body == "b"

    assert work.send([Outgoing("a"), Outgoing("b"), Outgoing("c")]) == [Outgoing("b")]
    assert work.bodies == ["a", "c"]


CALLS: dict[str, Any] = {
    "SendMessageBatch": lambda queue, receipt: queue.send([Outgoing("new")]),
    "ReceiveMessage": lambda queue, receipt: queue.receive(1, hidden_for=60),
    "ChangeMessageVisibility": lambda queue, receipt: queue.hide(receipt, 0),
    "DeleteMessage": lambda queue, receipt: queue.delete(receipt),
    "GetQueueAttributes": lambda queue, receipt: queue.backlog(),
}


def state(queue: MemoryQueue) -> tuple[int, int]:
    queue.faults = lambda service, operation: None
    return len(queue), queue.backlog().visible


@pytest.mark.parametrize("operation", CALLS)
def test_a_fault_before_a_call_changes_nothing(work: MemoryQueue, operation: str) -> None:
    work.send([Outgoing("held"), Outgoing("waiting")])
    receipt = receive(work).receipt
    work.faults = lambda service, name: Fault.BEFORE if name == operation else None

    with pytest.raises(Unavailable, match=f"sqs {operation}"):
        CALLS[operation](work, receipt)

    assert state(work) == (2, 1)


@pytest.mark.parametrize(
    ("operation", "expected"),
    [
        ("SendMessageBatch", (3, 2)),
        ("ReceiveMessage", (2, 0)),
        ("ChangeMessageVisibility", (2, 2)),
        ("DeleteMessage", (1, 1)),
        ("GetQueueAttributes", (2, 1)),
    ],
)
def test_a_fault_after_a_call_hides_that_it_happened(
    work: MemoryQueue, operation: str, expected: tuple[int, int]
) -> None:
    work.send([Outgoing("held"), Outgoing("waiting")])
    receipt = receive(work).receipt
    work.faults = lambda service, name: Fault.AFTER if name == operation else None

    with pytest.raises(Unavailable, match=f"sqs {operation}"):
        CALLS[operation](work, receipt)

    assert state(work) == expected


def test_a_send_that_fails_in_its_second_batch_has_sent_the_first(work: MemoryQueue) -> None:
    faults = iter([None, Fault.BEFORE])
    work.faults = lambda service, operation: next(faults)

    with pytest.raises(Unavailable):
        work.send([Outgoing(str(number)) for number in range(15)])

    work.faults = lambda service, operation: None
    assert len(work) == 10


def test_a_message_whose_receipt_was_lost_comes_back(clock: ManualClock, work: MemoryQueue) -> None:
    work.send([Outgoing("x")])
    work.faults = lambda service, operation: Fault.AFTER
    with pytest.raises(Unavailable):
        work.receive(1, hidden_for=30)
    work.faults = lambda service, operation: None
    assert work.receive(1, hidden_for=30) == []

    clock.advance(seconds=30)

    assert receive(work).receive_count == 2
