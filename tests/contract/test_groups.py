"""Serial runs on a FIFO queue: one message per ordering key is delivered at a time, and once."""

import pytest

from tests.contract.backends import Lane
from webhook_inbox.domain.ports import Message
from webhook_inbox.queue.lanes import Lanes
from webhook_inbox.queue.message import RunMessage


@pytest.fixture
def lanes(fifo: Lane) -> Lanes:
    return Lanes({"default": fifo.queue})


def reference(event_id: str, ordering_key: str, *, generation: int = 0) -> RunMessage:
    return RunMessage("acme", event_id, "acme.bill", generation, ordering_key=ordering_key)


def send(lanes: Lanes, *references: RunMessage) -> None:
    lanes.send([("default", reference) for reference in references])


def taken(fifo: Lane) -> Message | None:
    return next(iter(fifo.queue.receive(1, hidden_for=60)), None)


def event_of(message: Message | None) -> str | None:
    return None if message is None else RunMessage.decode(message.body).event_id


def test_a_queue_says_that_it_is_fifo(fifo: Lane) -> None:
    assert fifo.queue.fifo


def test_one_message_of_each_ordering_key_is_delivered_at_a_time(lanes: Lanes, fifo: Lane) -> None:
    send(lanes, reference("e1", "a"), reference("e2", "a"), reference("e3", "b"))

    first, second = taken(fifo), taken(fifo)

    assert {event_of(first), event_of(second)} == {"e1", "e3"}
    assert taken(fifo) is None


def test_one_that_is_hidden_keeps_its_place(lanes: Lanes, fifo: Lane) -> None:
    send(lanes, reference("e1", "a"), reference("e2", "a"))
    first = taken(fifo)
    assert first is not None

    fifo.queue.hide(first.receipt, 0)

    assert event_of(taken(fifo)) == "e1"


def test_a_message_resent_with_its_generation_is_delivered_once(lanes: Lanes, fifo: Lane) -> None:
    send(lanes, reference("e1", "a"))
    send(lanes, reference("e1", "a"))
    first = taken(fifo)
    assert first is not None
    fifo.queue.delete(first.receipt)

    assert fifo.queue.backlog().visible == 0


def test_a_replay_is_another_message(lanes: Lanes, fifo: Lane) -> None:
    send(lanes, reference("e1", "a"))
    first = taken(fifo)
    assert first is not None
    fifo.queue.delete(first.receipt)

    send(lanes, reference("e1", "a", generation=1))

    again = taken(fifo)
    assert again is not None
    assert RunMessage.decode(again.body).generation == 1


@pytest.mark.parametrize("ordering_key", ["é ü", "x" * 512, "", "a#b", "\t"])
def test_whatever_an_ordering_key_is_called_the_queue_takes_it(
    lanes: Lanes, fifo: Lane, ordering_key: str
) -> None:
    send(lanes, reference("e1", ordering_key))

    assert event_of(taken(fifo)) == "e1"


def test_a_whole_batch_of_one_ordering_key_comes_in_its_order(lanes: Lanes, fifo: Lane) -> None:
    sent = [f"e{number}" for number in range(23)]
    send(lanes, *(reference(event_id, "a") for event_id in sent))

    found: list[str | None] = []
    while (message := taken(fifo)) is not None:
        found.append(event_of(message))
        fifo.queue.delete(message.receipt)

    assert found == sent
