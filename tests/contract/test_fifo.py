"""FIFO queues: order within a group, one at a time, and nothing twice within five minutes."""

from itertools import count

import pytest

from tests.contract.backends import Lane, aws_differs
from webhook_inbox.domain.errors import Unavailable
from webhook_inbox.domain.ports import Message, Outgoing

GUIDE = "https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/"
NUMBERS = count()


def outgoing(body: str) -> Outgoing:
    """Returns a message of the group that its first letter names."""
    return Outgoing(body, group=body[0], dedup=f"{body}/{next(NUMBERS)}")


def send(lane: Lane, *bodies: str) -> None:
    assert lane.queue.send([outgoing(body) for body in bodies]) == []


def receive(lane: Lane, limit: int = 10) -> list[Message]:
    return list(lane.queue.receive(limit, hidden_for=60))


def bodies(messages: list[Message]) -> list[str]:
    return [message.body for message in messages]


def test_each_group_comes_in_the_order_of_its_sending(fifo: Lane) -> None:
    send(fifo, "a1", "b1", "a2", "b2", "a3")

    found = bodies(receive(fifo))

    assert [body for body in found if body[0] == "a"] == ["a1", "a2", "a3"]
    assert [body for body in found if body[0] == "b"] == ["b1", "b2"]


def test_25_messages_of_a_group_come_in_order(fifo: Lane) -> None:
    sent = [f"a{number:02}" for number in range(25)]
    send(fifo, *sent)

    found: list[str] = []
    while messages := receive(fifo):
        found += bodies(messages)
        for message in messages:
            fifo.queue.delete(message.receipt)

    assert found == sent


@aws_differs(
    GUIDE + "FIFO-queues-understanding-logic.html",
    moto="in the order of sending",
    ministack="in the order of sending",
)
def test_as_many_of_a_group_as_possible_come_together(fifo: Lane) -> None:
    send(fifo, "a1", "b1", "a2", "b2", "a3")

    assert bodies(receive(fifo, 4)) == ["a1", "a2", "a3", "b1"]


def test_a_group_waits_while_one_of_it_is_in_flight_and_others_go_on(fifo: Lane) -> None:
    send(fifo, "a1", "b1", "a2", "b2")
    first = receive(fifo, 1)

    others = receive(fifo)

    assert bodies(first) == ["a1"]
    assert bodies(others) == ["b1", "b2"]
    assert receive(fifo) == []


def test_deleting_a_message_frees_its_group(fifo: Lane) -> None:
    send(fifo, "a1", "a2")
    [first] = receive(fifo, 1)
    assert receive(fifo) == []

    fifo.queue.delete(first.receipt)

    assert bodies(receive(fifo)) == ["a2"]


def test_a_message_that_comes_back_is_still_the_first(fifo: Lane) -> None:
    send(fifo, "a1", "a2")
    [first] = receive(fifo, 1)
    send(fifo, "a3")

    fifo.queue.hide(first.receipt, 0)

    again = receive(fifo)
    assert bodies(again) == ["a1", "a2", "a3"]
    assert [message.receive_count for message in again] == [2, 1, 1]


def test_a_group_waits_until_none_of_it_is_in_flight(fifo: Lane) -> None:
    send(fifo, "a1", "a2", "a3")
    first, second, third = receive(fifo)

    fifo.queue.delete(second.receipt)
    fifo.queue.hide(first.receipt, 0)
    assert receive(fifo) == []
    fifo.queue.hide(third.receipt, 0)

    assert bodies(receive(fifo)) == ["a1", "a3"]


def test_the_backlog_counts_what_waits_behind_its_group(fifo: Lane) -> None:
    send(fifo, "a1", "a2", "a3")

    receive(fifo, 1)

    assert fifo.queue.backlog().visible == 2


def test_a_repeated_message_is_accepted_and_not_delivered(fifo: Lane) -> None:
    message = outgoing("a1")

    assert fifo.queue.send([message, message]) == []
    assert fifo.queue.send([message]) == []

    assert bodies(receive(fifo)) == ["a1"]


@aws_differs(GUIDE + "FIFO-key-terms.html", moto="forgets it with the message")
def test_what_was_sent_before_is_known_after_its_deletion(fifo: Lane) -> None:
    message = outgoing("a1")
    fifo.queue.send([message])
    [received] = receive(fifo)
    fifo.queue.delete(received.receipt)

    assert fifo.queue.send([message]) == []

    assert receive(fifo) == []


def test_a_repeated_message_is_known_in_every_group(fifo: Lane) -> None:
    fifo.queue.send([Outgoing("first", group="a", dedup="same")])

    assert fifo.queue.send([Outgoing("second", group="b", dedup="same")]) == []

    assert bodies(receive(fifo)) == ["first"]


def test_the_same_text_under_two_ids_is_two_messages(fifo: Lane) -> None:
    fifo.queue.send([Outgoing("x", group="a", dedup=id_) for id_ in ("1", "2")])

    assert bodies(receive(fifo)) == ["x", "x"]


def test_messages_that_a_fifo_queue_rejects_are_returned_and_the_rest_is_sent(fifo: Lane) -> None:
    good = outgoing("a1")
    refused = [
        Outgoing("no group", dedup="1"),
        Outgoing("no id", group="a"),
        Outgoing("plain"),
        Outgoing("delayed", delay=1, group="a", dedup="2"),
        Outgoing("a space", group="a b", dedup="3"),
        Outgoing("no ASCII", group="a", dedup="é"),
        Outgoing("long", group="a" * 129, dedup="4"),
        Outgoing("\x00", group="a", dedup="5"),
    ]

    assert fifo.queue.send([*refused, good]) == refused

    assert bodies(receive(fifo)) == ["a1"]


def test_a_group_and_an_id_are_128_characters_of_punctuation_and_more(fifo: Lane) -> None:
    every = "".join(map(chr, range(0x21, 0x7F)))
    name = (every * 2)[:128]

    assert fifo.queue.send([Outgoing("x", group=name, dedup=name)]) == []

    assert bodies(receive(fifo)) == ["x"]


@aws_differs(GUIDE + "sqs-visibility-timeout.html", moto="deletes it", ministack="deletes it")
def test_a_receipt_whose_time_is_up_does_not_delete(fifo: Lane) -> None:
    """AWS: on a FIFO queue DeleteMessage fails outside the visibility timeout."""
    send(fifo, "a1")
    [message] = receive(fifo)
    fifo.queue.hide(message.receipt, 0)

    with pytest.raises(Unavailable):
        fifo.queue.delete(message.receipt)

    assert bodies(receive(fifo)) == ["a1"]


def test_a_group_goes_on_when_its_first_has_died(fifo: Lane) -> None:
    send(fifo, "a1", "a2")
    for _ in range(2):
        [message] = receive(fifo, 1)
        fifo.queue.hide(message.receipt, 0)

    assert bodies(receive(fifo, 1)) == ["a2"]

    [dead] = fifo.dead_letters.receive(10, hidden_for=60)
    assert (dead.id, dead.body) == (message.id, "a1")


@aws_differs(
    GUIDE + "setting-up-dead-letter-queue-retention.html",
    moto="keeps its age",
    ministack="keeps its age",
)
def test_a_dead_message_is_as_old_as_its_death(fifo: Lane) -> None:
    """AWS: for FIFO queues the enqueue timestamp resets when a message moves to the DLQ."""
    send(fifo, "a1")
    for _ in range(2):
        [message] = receive(fifo, 1)
        fifo.queue.hide(message.receipt, 0)
    fifo.wait(0.01)
    assert receive(fifo) == []

    [dead] = fifo.dead_letters.receive(1, hidden_for=60)

    assert dead.sent_at > message.sent_at
