"""The FIFO queue in memory, where only virtual time or a simulation shows what it does."""

from datetime import timedelta

import pytest

from tests.unit.adapters.memory.receiving import exhaust, receive
from webhook_inbox.adapters.memory import Fault, ManualClock, MemoryFifo
from webhook_inbox.domain.errors import Unavailable
from webhook_inbox.domain.ports import Backlog, Outgoing

DEAD_RETENTION = timedelta(days=4)


@pytest.fixture
def dead(clock: ManualClock) -> MemoryFifo:
    return MemoryFifo(clock, name="dead", retention=DEAD_RETENTION)


@pytest.fixture
def work(clock: ManualClock, dead: MemoryFifo) -> MemoryFifo:
    return MemoryFifo(clock, name="work", dead_letters=dead, max_receive_count=2)


def message(body: str, *, dedup: str = "") -> Outgoing:
    return Outgoing(body, group=body[0], dedup=dedup or body)


@pytest.mark.parametrize(("later", "copies"), [(299.999, 1), (300, 2)], ids=["within", "after"])
def test_a_copy_is_known_for_five_minutes(
    clock: ManualClock, work: MemoryFifo, later: float, copies: int
) -> None:
    """https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/using-messagededuplicationid-property.html

    A message sent again within 5 minutes is accepted and not delivered; later it is delivered.
    """
    work.send([message("a1")])
    clock.advance(seconds=later)

    assert work.send([message("a1")]) == []

    assert len(work) == copies


def test_a_copy_does_not_make_a_message_known_for_longer(
    clock: ManualClock, work: MemoryFifo
) -> None:
    for _ in range(4):
        work.send([message("a1")])
        clock.advance(minutes=2)

    assert len(work) == 2


def test_nothing_is_sent_after_a_batch_that_was_not_taken_whole(work: MemoryFifo) -> None:
    sent = [message(f"a{number:02}") for number in range(25)]
    work.refuses = lambda message: message.body == "a12"

    assert work.send(sent) == [sent[12], *sent[20:]]


def test_a_message_that_was_not_taken_is_not_known(work: MemoryFifo) -> None:
    work.refuses = lambda message: True
    assert work.send([message("a1")]) == [message("a1")]
    work.refuses = lambda message: False

    work.send([message("a1")])

    assert work.bodies == ["a1"]


def test_a_message_whose_answer_was_lost_may_be_sent_again(work: MemoryFifo) -> None:
    work.faults = lambda service, operation: Fault.AFTER
    with pytest.raises(Unavailable):
        work.send([message("a1")])
    work.faults = lambda service, operation: None

    work.send([message("a1")])

    assert work.bodies == ["a1"]


def test_a_group_comes_back_when_the_last_of_it_does(clock: ManualClock, work: MemoryFifo) -> None:
    """https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/FIFO-queues-understanding-logic.html

    No more of a group is returned until what was received is deleted or visible again.
    """
    work.send([message("a1"), message("a2")])
    first, second = work.receive(10, hidden_for=30)
    work.hide(second.receipt, 90)
    clock.advance(seconds=60)
    assert work.receive(10, hidden_for=30) == []
    assert work.next_visible_at() == int(clock.now().timestamp() * 1000) + 30_000

    clock.advance(seconds=30)

    assert [m.id for m in work.receive(10, hidden_for=30)] == [first.id, second.id]


def test_waiting_by_visibility_does_not_let_the_next_one_pass(
    clock: ManualClock, work: MemoryFifo
) -> None:
    work.send([message("a1"), message("a2"), message("b1")])
    work.hide(receive(work).receipt, 6 * 3600)

    assert receive(work).body == "b1"
    clock.advance(hours=5)
    assert [m.body for m in work.receive(10, hidden_for=30)] == ["b1"]
    clock.advance(hours=1)

    assert [m.body for m in work.receive(2, hidden_for=30)] == ["a1", "a2"]


def test_poison_keeps_its_place_and_its_age(clock: ManualClock) -> None:
    """https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-available-cloudwatch-metrics.html

    FIFO queues do not reorder: a failed message blocks its group.
    """
    queue = MemoryFifo(clock)
    queue.send([message("a1")])
    clock.advance(minutes=5)
    queue.send([message("a2")])
    for _ in range(4):
        queue.hide(receive(queue).receipt, 0)

    assert queue.backlog() == Backlog(visible=2, oldest=timedelta(minutes=5))
    assert receive(queue).body == "a1"


def test_a_dead_message_has_the_dead_letters_whole_retention(
    clock: ManualClock, work: MemoryFifo, dead: MemoryFifo
) -> None:
    """https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/setting-up-dead-letter-queue-retention.html

    For FIFO queues the enqueue timestamp resets when a message moves to the DLQ.
    """
    work.send([message("a1")])
    clock.advance(days=6)
    exhaust(work)

    clock.advance(seconds=DEAD_RETENTION.total_seconds() - 1)
    assert len(dead) == 1
    clock.advance(seconds=1)
    assert len(dead) == 0


def test_two_that_were_sent_under_one_id_both_lie_among_the_dead(
    clock: ManualClock, work: MemoryFifo, dead: MemoryFifo
) -> None:
    """https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-configure-dead-letter-queue-redrive.html

    On its way to a FIFO DLQ a message's deduplication id is replaced by its message id.
    """
    for _ in range(2):
        work.send([message("a1", dedup="same")])
        died = exhaust(work)
        clock.advance(minutes=5)
    clock.advance(minutes=-5)

    assert dead.bodies == ["a1", "a1"]
    dead.send([message("swallowed", dedup=died.id), message("taken", dedup="same")])
    assert dead.bodies == ["a1", "a1", "taken"]


def test_what_goes_back_is_in_its_group_and_no_copy_of_itself(
    work: MemoryFifo, dead: MemoryFifo
) -> None:
    for body in ("a1", "b1"):
        work.send([message(body)])
        exhaust(work)
    work.send([message("a2")])

    assert dead.redrive() == 2

    assert work.bodies == ["a2", "a1", "b1"]
    assert [m.body for m in work.receive(1, hidden_for=30)] == ["a2"]
    assert [m.body for m in work.receive(10, hidden_for=30)] == ["b1"]


def test_a_message_behind_a_dying_one_has_not_died(work: MemoryFifo, dead: MemoryFifo) -> None:
    work.send([message("a1"), message("a2")])
    for _ in range(2):
        work.hide(receive(work).receipt, 0)

    assert receive(work).body == "a2"

    assert (work.bodies, dead.bodies) == (["a2"], ["a1"])


def test_a_simulation_takes_the_first_of_any_group(work: MemoryFifo) -> None:
    work.send([message(body) for body in ("a1", "b1", "a2", "c1")])
    assert work.visible() == ["work-1", "work-2", "work-4"]

    taken = work.take("work-2", hidden_for=60)

    assert taken is not None
    assert taken.body == "b1"
    assert work.visible() == ["work-1", "work-4"]
    assert MemoryFifo(ManualClock()).next_visible_at() is None


def test_a_fifo_queue_can_be_put_back(clock: ManualClock, work: MemoryFifo) -> None:
    work.send([message("a1"), message("a2")])
    receive(work)
    before = work.snapshot()

    work.send([message("b1")])
    work.restore(before)

    assert work.snapshot() == before
    work.send([message("a1"), message("b1")])
    assert work.bodies == ["a1", "a2", "b1"]
    assert [m.body for m in work.receive(10, hidden_for=30)] == ["b1"]
    clock.advance(minutes=5)
    assert work.snapshot()[2] == ()
