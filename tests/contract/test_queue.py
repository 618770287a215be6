"""Queues: what is taken, and when it can be received."""

import json
from datetime import timedelta

import pytest

from tests.contract.backends import Lane, aws_differs
from webhook_inbox.domain.errors import Unavailable
from webhook_inbox.domain.ports import Outgoing
from webhook_inbox.domain.quotas import DELAY_SECONDS, HIDE_SECONDS, MESSAGE_BYTES

GUIDE = "https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/"


def test_a_message_arrives_as_it_was_sent(lane: Lane) -> None:
    body = json.dumps({"v": 1, "event_id": 'naïve ☃ 🦄 "\\'}, ensure_ascii=False) + "\t\r\n"

    lane.send(body)

    assert lane.receive().body == body


def test_25_messages_are_sent_and_received(lane: Lane) -> None:
    bodies = [f"message {number:02}" for number in range(25)]

    lane.send(*bodies)

    assert sorted(lane.received(25)) == bodies


def test_sending_nothing_is_no_error(lane: Lane) -> None:
    assert lane.queue.send([]) == []
    assert lane.queue.receive(10, hidden_for=1) == []


def test_the_same_text_twice_is_two_messages(lane: Lane) -> None:
    lane.send("x", "x")

    assert lane.receive().id != lane.receive().id


def test_messages_that_the_queue_rejects_are_returned_and_the_rest_is_sent(lane: Lane) -> None:
    """AWS fails a whole batch for one such message, so it is not asked."""
    refused = [
        Outgoing("control \x00 character"),
        Outgoing("vertical \x0b tab"),
        Outgoing("not a character \uffff"),
        Outgoing("half \ud800 of one"),
        Outgoing(""),
        Outgoing("x" * (MESSAGE_BYTES + 1)),
        Outgoing("é" * (MESSAGE_BYTES // 2 + 1)),
        Outgoing("late", delay=901),
        Outgoing("early", delay=-1),
        Outgoing("a space", group="a b"),
        Outgoing("a long group", group="g" * 129),
        Outgoing("sent before", dedup="d"),
    ]

    assert lane.queue.send([Outgoing("one"), *refused, Outgoing("two")]) == refused

    assert sorted(lane.received(2)) == ["one", "two"]


def test_a_standard_queue_takes_messages_with_and_without_a_group(lane: Lane) -> None:
    """A fair queue needs no setting: the group is the tenant, and orders nothing.

    https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-fair-queues.html
    """
    groups = ("acct_7", "acct_7", "", "sha256:" + "0" * 64, "!" * 128)
    sent = [Outgoing(f"m{number}", group=group) for number, group in enumerate(groups)]

    assert lane.queue.send(sent) == []

    assert sorted(lane.received(len(sent))) == [message.body for message in sent]


def test_a_message_may_be_as_long_as_a_batch(lane: Lane) -> None:
    """1 MiB each: a batch may be no longer than one message may be, so these are three."""
    bodies = [letter * MESSAGE_BYTES for letter in "ab"] + ["c"]

    lane.send(*bodies)

    assert sorted(lane.received(3)) == bodies


def test_large_messages_are_spread_over_batches(lane: Lane) -> None:
    bodies = [letter * (MESSAGE_BYTES // 3 + 1) for letter in "abcd"]

    lane.send(*bodies)

    assert sorted(lane.received(4)) == bodies


def test_a_delayed_message_comes_later(lane: Lane) -> None:
    begun = lane.now()
    lane.queue.send([Outgoing("later", delay=1), Outgoing("now")])

    bodies = sorted(lane.received(2))

    assert bodies == ["later", "now"]
    assert lane.now() - begun >= timedelta(seconds=1)


def test_a_message_may_be_delayed_by_a_quarter_of_an_hour(lane: Lane) -> None:
    assert lane.queue.send([Outgoing("x", delay=DELAY_SECONDS)]) == []

    assert lane.queue.receive(1, hidden_for=1) == []
    assert lane.queue.backlog().visible == 0


def test_no_more_is_received_than_was_asked_for_and_nothing_twice(lane: Lane) -> None:
    lane.send(*"abcde")

    first = lane.queue.receive(3, hidden_for=60)
    rest = lane.received(5 - len(first))

    assert len(first) <= 3
    assert sorted([m.body for m in first] + rest) == list("abcde")


@pytest.mark.parametrize("limit", [0, 11])
def test_less_than_one_and_more_than_ten_messages_cannot_be_received(
    lane: Lane, limit: int
) -> None:
    with pytest.raises(Unavailable):
        lane.queue.receive(limit, hidden_for=60)


@aws_differs(GUIDE + "sqs-visibility-timeout.html", moto="receives it", ministack="receives it")
def test_a_message_cannot_be_received_for_less_than_no_time(lane: Lane) -> None:
    with pytest.raises(Unavailable):
        lane.queue.receive(1, hidden_for=-1)


@aws_differs(GUIDE + "sqs-visibility-timeout.html", ministack="receives it")
def test_a_message_cannot_be_received_for_more_than_12_hours(lane: Lane) -> None:
    with pytest.raises(Unavailable):
        lane.queue.receive(1, hidden_for=HIDE_SECONDS + 1)


def test_a_message_received_for_no_time_can_be_received_again_at_once(lane: Lane) -> None:
    lane.send("x")

    first = lane.receive(hidden_for=0)
    second = lane.receive()

    assert (first.id, first.receive_count) == (second.id, 1)
    assert second.receive_count == 2


def test_a_message_carries_when_it_was_sent(lane: Lane) -> None:
    before = lane.now()
    lane.send("x")
    after = lane.now()

    first = lane.receive(hidden_for=0)
    second = lane.receive()

    # The runtime may round to whole seconds.
    rounding = timedelta(seconds=1)
    assert before - rounding <= first.sent_at <= after + rounding
    assert first.sent_at == second.sent_at


def test_the_backlog_counts_what_can_be_received(lane: Lane) -> None:
    assert lane.queue.backlog().visible == 0
    lane.queue.send([Outgoing("x"), Outgoing("y"), Outgoing("z", delay=600)])

    lane.receive()

    assert lane.queue.backlog().visible == 1
