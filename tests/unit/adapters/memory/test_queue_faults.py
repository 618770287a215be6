"""The queue in memory when a call of it fails, before or after its effect."""

from typing import Any

import pytest

from tests.unit.adapters.memory.receiving import receive
from webhook_inbox.adapters.memory import Fault, ManualClock, MemoryQueue
from webhook_inbox.domain.errors import Unavailable
from webhook_inbox.domain.ports import Outgoing
from webhook_inbox.domain.quotas import MESSAGE_BYTES

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


class Calls:
    """Notes every call, and lets it through."""

    def __init__(self) -> None:
        self.names: list[str] = []

    def __call__(self, service: str, operation: str) -> None:
        self.names.append(operation)


HALF = "x" * (MESSAGE_BYTES // 2)


@pytest.mark.parametrize(
    ("messages", "calls"),
    [
        ([], 0),
        ([Outgoing("")], 0),
        ([Outgoing("x")], 1),
        ([Outgoing("")] * 5 + [Outgoing("x")] * 10, 1),
        ([Outgoing("x")] * 11, 2),
        ([Outgoing(HALF)] * 2, 1),
        ([Outgoing(HALF)] * 2 + [Outgoing("x")], 2),
        ([Outgoing("é" * (MESSAGE_BYTES // 4)), Outgoing(HALF), Outgoing("x")], 2),
    ],
    ids=["none", "refused", "one", "ten", "eleven", "1 MiB", "more", "UTF-8"],
)
def test_a_batch_is_ten_messages_or_1_mib(
    work: MemoryQueue, messages: list[Outgoing], calls: int
) -> None:
    """As the adapter does it: each batch is a call, which can fail.

    https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_SendMessageBatch.html
    """
    work.faults = noted = Calls()

    work.send(messages)

    assert noted.names == ["SendMessageBatch"] * calls
