"""Queues: what is taken, when it can be received, and where it ends."""

import json
from datetime import UTC, datetime, timedelta

import pytest

from tests.contract.backends import Lane, only
from webhook_inbox.errors import Unavailable
from webhook_inbox.limits import MESSAGE_BYTES
from webhook_inbox.ports import Outgoing


def received(lane: Lane, amount: int) -> list[str]:
    """Returns the bodies of as many messages as are expected, sorted."""
    bodies: list[str] = []

    def look() -> bool:
        bodies.extend(message.body for message in lane.queue.receive(10, hidden_for=60))
        return len(bodies) >= amount

    lane.until(look)
    return sorted(bodies)


def test_a_message_arrives_as_it_was_sent(lane: Lane) -> None:
    body = json.dumps({"v": 1, "event_id": 'naïve ☃ 🦄 "\\'}, ensure_ascii=False) + "\t\r\n"

    assert lane.queue.send([Outgoing(body)]) == []

    assert lane.receive().body == body


def test_25_messages_are_sent_and_received(lane: Lane) -> None:
    bodies = [f"message {number:02}" for number in range(25)]

    assert lane.queue.send([Outgoing(body) for body in bodies]) == []

    assert received(lane, 25) == bodies


def test_sending_nothing_is_no_error(lane: Lane) -> None:
    assert lane.queue.send([]) == []
    assert lane.queue.receive(10, hidden_for=1) == []


def test_what_the_queue_does_not_take_comes_back_and_the_rest_is_sent(lane: Lane) -> None:
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
    ]

    assert lane.queue.send([Outgoing("one"), *refused, Outgoing("two")]) == refused

    assert received(lane, 2) == ["one", "two"]


def test_large_messages_are_spread_over_batches(lane: Lane) -> None:
    """A batch may be no longer than one message may be, 1 MiB."""
    bodies = [letter * (MESSAGE_BYTES // 3 + 1) for letter in "abcd"]

    assert lane.queue.send([Outgoing(body) for body in bodies]) == []

    assert received(lane, 4) == bodies


def test_a_delayed_message_comes_later(lane: Lane) -> None:
    lane.queue.send([Outgoing("later", delay=1), Outgoing("now")])

    first = lane.receive()
    second = lane.receive()

    assert (first.body, second.body) == ("now", "later")


def test_a_received_message_is_hidden_until_its_time_is_up(lane: Lane) -> None:
    lane.queue.send([Outgoing("x")])

    first = lane.receive(hidden_for=1)
    assert lane.queue.receive(10, hidden_for=1) == []
    second = lane.receive()

    assert first.id == second.id
    assert first.receipt != second.receipt
    assert (first.receive_count, second.receive_count) == (1, 2)


def test_hiding_longer_keeps_a_message_away(lane: Lane) -> None:
    lane.queue.send([Outgoing("hidden"), Outgoing("other")])
    by_body = {m.body: m for m in (lane.receive(hidden_for=1), lane.receive(hidden_for=1))}

    lane.queue.hide(by_body["hidden"].receipt, 60)

    # The other was hidden just as long at first: when it is back, this one would be too.
    assert lane.receive().body == "other"
    assert lane.queue.receive(10, hidden_for=60) == []


def test_hiding_for_no_time_brings_a_message_back_at_once(lane: Lane) -> None:
    lane.queue.send([Outgoing("x")])
    first = lane.receive()

    lane.queue.hide(first.receipt, 0)

    assert lane.receive().id == first.id


# moto takes -1, ministack either; AWS answers InvalidParameterValue.
@only("memory")
@pytest.mark.parametrize("seconds", [-1, 43201])
def test_hiding_for_a_time_out_of_bounds_is_refused(lane: Lane, seconds: int) -> None:
    lane.queue.send([Outgoing("x")])
    message = lane.receive()

    with pytest.raises(Unavailable):
        lane.queue.hide(message.receipt, seconds)


def test_hiding_a_deleted_message_is_refused(lane: Lane) -> None:
    lane.queue.send([Outgoing("x")])
    message = lane.receive()
    lane.queue.delete(message.receipt)

    with pytest.raises(Unavailable):
        lane.queue.hide(message.receipt, 10)


def test_a_deleted_message_does_not_come_back(lane: Lane) -> None:
    lane.queue.send([Outgoing("x"), Outgoing("y")])
    first = lane.receive(hidden_for=1)

    lane.queue.delete(first.receipt)

    other = lane.receive(hidden_for=1)
    assert other.body != first.body
    assert lane.receive().id == other.id


# ministack answers ReceiptHandleIsInvalid; AWS has forgotten the message and is content.
@only("memory", "moto")
def test_a_message_may_be_deleted_twice(lane: Lane) -> None:
    lane.queue.send([Outgoing("x")])
    message = lane.receive()

    lane.queue.delete(message.receipt)
    lane.queue.delete(message.receipt)

    assert lane.queue.backlog().visible == 0


# moto and ministack differ in each of these; on AWS a receipt is good until the message is
# received again.
@only("memory")
def test_an_outdated_receipt_has_no_effect(lane: Lane) -> None:
    lane.queue.send([Outgoing("x")])
    first = lane.receive(hidden_for=1)
    second = lane.receive(hidden_for=60)

    lane.queue.delete(first.receipt)
    with pytest.raises(Unavailable):
        lane.queue.hide(first.receipt, 0)

    lane.queue.hide(second.receipt, 0)
    assert lane.queue.backlog().visible == 1


def test_a_message_carries_when_it_was_sent(lane: Lane) -> None:
    clock = lane.clock
    before = clock.now() if clock else datetime.now(UTC)
    lane.queue.send([Outgoing("x")])

    first = lane.receive(hidden_for=1)
    second = lane.receive(hidden_for=1)

    # The runtime may round to whole seconds.
    assert abs(first.sent_at - before) < timedelta(seconds=5)
    assert first.sent_at == second.sent_at


def test_a_message_received_too_often_goes_to_the_dead_letters(lane: Lane) -> None:
    """Two receives are allowed; the third finds nothing and moves the message."""
    lane.queue.send([Outgoing("poison")])
    first = lane.receive()
    lane.queue.hide(first.receipt, 0)
    second = lane.receive()
    lane.queue.hide(second.receipt, 0)

    def buried() -> bool:
        assert lane.queue.receive(10, hidden_for=60) == []
        return lane.dead_letters.backlog().visible == 1

    lane.until(buried)

    [dead] = lane.until(lambda: lane.dead_letters.receive(10, hidden_for=60))
    assert dead.body == "poison"
    assert (first.receive_count, second.receive_count) == (1, 2)
    # AWS keeps id and time of sending: it is the same message in another queue.
    assert (dead.id, dead.sent_at) == (first.id, first.sent_at)


def test_the_backlog_counts_what_can_be_received(lane: Lane) -> None:
    assert lane.queue.backlog().visible == 0
    lane.queue.send([Outgoing("x"), Outgoing("y"), Outgoing("z", delay=600)])

    lane.receive()

    assert lane.queue.backlog().visible == 1
