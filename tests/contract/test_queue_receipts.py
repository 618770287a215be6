"""Receipts: how long a message is hidden, who may say so, and how it is deleted."""

from datetime import timedelta

import pytest

from tests.contract.backends import Lane, aws_differs
from webhook_inbox.domain.errors import Unavailable
from webhook_inbox.domain.quotas import HIDE_SECONDS

API = "https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/"
GUIDE = "https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/"
SECOND = timedelta(seconds=1)


def test_a_received_message_is_hidden_until_its_time_is_up(lane: Lane) -> None:
    lane.send("x")
    begun = lane.now()

    first = lane.receive(hidden_for=1)
    second = lane.receive()

    assert lane.now() - begun >= SECOND
    assert first.id == second.id
    assert first.receipt != second.receipt
    assert (first.receive_count, second.receive_count) == (1, 2)


def test_hiding_longer_keeps_a_message_away(lane: Lane) -> None:
    lane.send("hidden", "other")
    by_body = {m.body: m for m in (lane.receive(), lane.receive())}

    lane.queue.hide(by_body["hidden"].receipt, 1)
    lane.queue.hide(by_body["hidden"].receipt, 60)
    lane.queue.hide(by_body["other"].receipt, 1)

    # When the other is back, this one would be too.
    assert lane.receive().body == "other"
    assert lane.queue.receive(10, hidden_for=60) == []


def test_hiding_shorter_brings_a_message_back_sooner(lane: Lane) -> None:
    lane.send("x")
    first = lane.receive(hidden_for=HIDE_SECONDS)
    begun = lane.now()

    lane.queue.hide(first.receipt, 1)

    assert lane.receive().id == first.id
    assert lane.now() - begun >= SECOND


def test_hiding_for_no_time_brings_a_message_back_at_once(lane: Lane) -> None:
    lane.send("x")
    first = lane.receive()

    lane.queue.hide(first.receipt, 0)

    assert lane.receive().id == first.id


@aws_differs(API + "API_ChangeMessageVisibility.html", moto="hides it", ministack="hides it")
def test_hiding_for_less_than_no_time_is_refused(lane: Lane) -> None:
    lane.send("x")
    message = lane.receive()

    with pytest.raises(Unavailable):
        lane.queue.hide(message.receipt, -1)


@aws_differs(API + "API_ChangeMessageVisibility.html", ministack="hides it")
def test_hiding_for_more_than_12_hours_is_refused(lane: Lane) -> None:
    lane.send("x")
    message = lane.receive()

    with pytest.raises(Unavailable):
        lane.queue.hide(message.receipt, HIDE_SECONDS + 1)


@aws_differs(GUIDE + "sqs-visibility-timeout.html", ministack="counts from the call")
def test_the_12_hours_begin_with_the_receive(lane: Lane) -> None:
    """AWS: extending does not reset the maximum, so that the full 12 hours likely fail."""
    lane.send("x")
    message = lane.receive()
    lane.wait(0.01)

    with pytest.raises(Unavailable):
        lane.queue.hide(message.receipt, HIDE_SECONDS)
    lane.queue.hide(message.receipt, HIDE_SECONDS - 60)


@aws_differs(API + "API_ChangeMessageVisibility.html", moto="hides it", ministack="hides it")
def test_hiding_a_message_that_is_visible_again_is_refused(lane: Lane) -> None:
    lane.send("x")
    message = lane.receive()
    lane.queue.hide(message.receipt, 0)

    with pytest.raises(Unavailable, match="MessageNotInflight"):
        lane.queue.hide(message.receipt, 10)


def test_hiding_a_deleted_message_is_refused(lane: Lane) -> None:
    lane.send("x")
    message = lane.receive()
    lane.queue.delete(message.receipt)

    with pytest.raises(Unavailable):
        lane.queue.hide(message.receipt, 10)


def test_a_deleted_message_does_not_come_back(lane: Lane) -> None:
    lane.send("x", "y")
    first = lane.receive()

    lane.queue.delete(first.receipt)

    other = lane.receive(hidden_for=1)
    assert other.body != first.body
    assert lane.receive().id == other.id


def test_a_receipt_deletes_although_its_time_is_up(lane: Lane) -> None:
    lane.send("x")
    message = lane.receive()
    lane.queue.hide(message.receipt, 0)

    lane.queue.delete(message.receipt)

    assert lane.queue.receive(1, hidden_for=1) == []


@aws_differs(API + "API_DeleteMessage.html", ministack="ReceiptHandleIsInvalid")
def test_a_message_may_be_deleted_twice(lane: Lane) -> None:
    """AWS: a request with an old receipt succeeds."""
    lane.send("x")
    message = lane.receive()

    lane.queue.delete(message.receipt)
    lane.queue.delete(message.receipt)

    assert lane.queue.backlog().visible == 0


@aws_differs(API + "API_DeleteMessage.html", moto="deletes it", ministack="ReceiptHandleIsInvalid")
def test_a_receipt_of_an_earlier_receive_deletes_nothing(lane: Lane) -> None:
    """AWS: the request succeeds and the message might stay; here it always does."""
    lane.send("x")
    first = lane.receive(hidden_for=0)
    second = lane.receive()

    lane.queue.delete(first.receipt)

    lane.queue.hide(second.receipt, 0)
    assert lane.queue.backlog().visible == 1


@aws_differs(GUIDE + "sqs-visibility-timeout.html", moto="hides it")
def test_a_receipt_of_an_earlier_receive_hides_nothing(lane: Lane) -> None:
    """AWS: a changed timeout applies to one particular receipt of the message."""
    lane.send("x")
    first = lane.receive(hidden_for=0)
    lane.receive()

    with pytest.raises(Unavailable):
        lane.queue.hide(first.receipt, 0)
    assert lane.queue.backlog().visible == 0


def test_a_receipt_that_the_queue_did_not_give_is_refused(lane: Lane) -> None:
    lane.send("x")
    message = lane.receive()

    for queue, receipt in ((lane.queue, "nonsense"), (lane.dead_letters, message.receipt)):
        with pytest.raises(Unavailable, match="ReceiptHandleIsInvalid"):
            queue.delete(receipt)
        with pytest.raises(Unavailable, match="ReceiptHandleIsInvalid"):
            queue.hide(receipt, 1)
