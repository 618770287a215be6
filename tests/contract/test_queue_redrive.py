"""The redrive policy: what moves to the dead letters, when, and as what."""

from tests.contract.backends import Lane, aws_differs

API = "https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/"


def moved_to_dlq(lane: Lane) -> bool:
    """Tells whether the one message has moved, as a receive that finds nothing makes it."""
    assert lane.queue.receive(10, hidden_for=60) == []
    return lane.dead_letters.backlog().visible == 1


def test_a_message_received_too_often_goes_to_the_dead_letters(lane: Lane) -> None:
    """Two receives are allowed; the third finds nothing and moves the message."""
    lane.send("poison")
    first = lane.fail(times=2)
    assert lane.queue.backlog().visible == 1

    lane.until(lambda: moved_to_dlq(lane))

    [dead] = lane.until(lambda: lane.dead_letters.receive(10, hidden_for=60))
    assert dead.body == "poison"
    # AWS keeps id and time of sending: it is the same message in another queue.
    assert (dead.id, dead.sent_at) == (first.id, first.sent_at)


def test_messages_behind_a_dying_message_are_received(lane: Lane) -> None:
    lane.send("poison")
    lane.fail(times=2)
    lane.send("next")

    assert lane.received(1) == ["next"]
    assert lane.dead_letters.backlog().visible == 1


def test_receives_count_on_among_the_dead_letters(lane: Lane) -> None:
    lane.send("poison")
    lane.fail(times=2)
    lane.until(lambda: moved_to_dlq(lane))

    [dead] = lane.until(lambda: lane.dead_letters.receive(1, hidden_for=60))

    assert dead.receive_count == 3


def test_dead_letters_stay_however_often_they_are_received(lane: Lane) -> None:
    lane.send("poison")
    lane.fail(times=2)
    lane.until(lambda: moved_to_dlq(lane))

    for _ in range(4):
        [dead] = lane.until(lambda: lane.dead_letters.receive(1, hidden_for=60))
        lane.dead_letters.hide(dead.receipt, 0)

    assert lane.dead_letters.backlog().visible == 1


@aws_differs(
    API + "API_DeleteMessage.html",
    moto="ReceiptHandleIsInvalid",
    ministack="ReceiptHandleIsInvalid",
)
def test_a_receipt_from_before_its_death_does_not_delete_a_dead_letter(lane: Lane) -> None:
    lane.send("poison")
    lane.queue.hide(lane.receive().receipt, 0)
    second = lane.receive()
    lane.queue.hide(second.receipt, 0)
    lane.until(lambda: moved_to_dlq(lane))

    lane.queue.delete(second.receipt)

    assert lane.dead_letters.backlog().visible == 1
