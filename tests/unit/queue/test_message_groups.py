"""In which group a run's message is sent, and what a second one is known by."""

from collections.abc import Mapping
from dataclasses import replace

import pytest

from webhook_inbox.adapters.memory import ManualClock, MemoryFifo, MemoryQueue
from webhook_inbox.domain.errors import Unavailable
from webhook_inbox.domain.model import Run, Status
from webhook_inbox.domain.ports import Outgoing
from webhook_inbox.domain.quotas import takes
from webhook_inbox.queue.lanes import Lanes
from webhook_inbox.queue.message import RunMessage

RUN = Run("acme", "evt-1", "acme.bill", "paid", Status.PENDING, generation=3, ordering_key="cus_1")


def sent(reference: RunMessage) -> Outgoing:
    return reference.outgoing(fifo=True)


def test_an_ordering_key_s_runs_of_one_handler_are_one_group() -> None:
    one = RunMessage("acme", "evt-1", "acme.bill", ordering_key="cus_1")
    two = RunMessage("acme", "evt-2", "acme.bill", generation=4, ordering_key="cus_1")

    assert sent(one).group == sent(two).group == "acme.bill#cus_1"


@pytest.mark.parametrize(
    "other",
    [
        RunMessage("acme", "evt-1", "acme.bill", ordering_key="cus_2"),
        RunMessage("acme", "evt-1", "acme.ship", ordering_key="cus_1"),
        RunMessage("acme", "evt-1", "acme.bill"),
        RunMessage("acme", "evt-1", "acme.bill", ordering_key="#evt-1"),
    ],
    ids=["ordering_key", "handler", "none", "odd"],
)
def test_whatever_else_differs_is_another_group(other: RunMessage) -> None:
    assert sent(other).group != "acme.bill#cus_1"


def test_a_run_of_no_ordering_key_is_in_order_with_nothing() -> None:
    one, two = (RunMessage("acme", id_, "acme.bill") for id_ in ("evt-1", "evt-2"))

    assert sent(one).group != sent(two).group


def test_a_second_message_is_known_by_event_handler_and_generation() -> None:
    ids = {
        sent(RunMessage(source, event_id, handler, generation, ordering_key="cus_1")).dedup
        for source in ("acme", "github")
        for event_id in ("evt-1", "evt-2")
        for handler in ("a", "b")
        for generation in (0, 1)
    }

    assert len(ids) == 16
    again = [sent(RunMessage("acme", "evt-1", "a", ordering_key="cus_1")).dedup for _ in range(2)]
    assert again[0] == again[1]


@pytest.mark.parametrize("text", ["é", "a b", "x" * 512, "\ud800", "\x00", "名"])
def test_sqs_takes_whatever_an_ordering_key_or_an_event_is_called(text: str) -> None:
    message = sent(RunMessage("acme", text, "acme.bill", ordering_key=text))

    assert takes(message, fifo=True)
    assert (
        message.group != sent(RunMessage("acme", text, "acme.bill", ordering_key=f"{text}.")).group
    )


def test_a_standard_lane_gets_neither_group_nor_id() -> None:
    message = RunMessage.of(RUN).outgoing(fifo=False, delay=7)

    assert (message.group, message.dedup, message.delay) == ("", "", 7)
    assert takes(message)


def test_a_standard_lane_gets_the_tenant_as_the_group_and_a_fifo_lane_does_not() -> None:
    run = replace(RUN, tenant="acct_7")
    message = RunMessage.of(run).outgoing(fifo=False)

    assert (message.group, message.dedup) == ("acct_7", "")
    assert takes(message)
    assert RunMessage.of(run).outgoing(fifo=True) == RunMessage.of(RUN).outgoing(fifo=True)


def test_the_group_is_not_part_of_the_text() -> None:
    text = RunMessage.of(RUN).encode()

    assert "cus_1" not in text
    assert RunMessage.decode(text) == RunMessage("acme", "evt-1", "acme.bill", 3)


def test_a_message_of_a_run_says_what_may_claim_it() -> None:
    reference = RunMessage.of(RUN)

    assert (reference.generation, reference.ordering_key) == (3, "cus_1")


# -- lanes


@pytest.fixture
def queues() -> Mapping[str, MemoryQueue]:
    clock = ManualClock()
    return {"default": MemoryQueue(clock), "bill": MemoryFifo(clock, name="bill")}


def test_lanes_send_to_each_kind_of_queue_what_it_takes(
    queues: Mapping[str, MemoryQueue],
) -> None:
    reference = RunMessage.of(RUN)

    Lanes(queues).send([("default", reference), ("bill", reference)], delay=5)

    assert queues["bill"].bodies == queues["default"].bodies == [reference.encode()]
    assert len(queues["bill"].visible()) == 1
    assert queues["default"].visible() == []


def test_a_lane_that_is_gone_is_the_default_one_and_takes_it_without_a_group(
    queues: Mapping[str, MemoryQueue],
) -> None:
    Lanes(queues).send([("gone", RunMessage.of(RUN))])

    assert len(queues["default"]) == 1


def test_what_a_fifo_lane_gets_keeps_its_order(queues: Mapping[str, MemoryQueue]) -> None:
    references = [RunMessage("acme", f"evt-{n}", "b", ordering_key="cus_1") for n in range(25)]

    Lanes(queues).send([("bill", reference) for reference in references])

    assert queues["bill"].bodies == [reference.encode() for reference in references]


def test_what_a_fifo_lane_does_not_take_is_told(queues: Mapping[str, MemoryQueue]) -> None:
    queues["bill"].refuses = lambda _: True

    with pytest.raises(Unavailable, match="1 of 1 messages not taken"):
        Lanes(queues).send([("bill", RunMessage.of(RUN))])
