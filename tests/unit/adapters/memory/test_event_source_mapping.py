"""The event source mapping in memory: which messages are deleted, and which stay."""

from typing import Any

import pytest

from processor.batch import respond
from tests.unit.adapters.memory.invoking import VISIBILITY, filled, mapping, polled
from webhook_inbox.adapters.memory import Fault, ManualClock, MemoryQueue
from webhook_inbox.adapters.memory.event_source_mapping import MappingBatch
from webhook_inbox.domain.ports import Message
from webhook_inbox.domain.timestamps import to_ms


def failures(*ids: Any) -> dict[str, Any]:
    return {"batchItemFailures": [{"itemIdentifier": id_} for id_ in ids]}


@pytest.mark.parametrize("answer", [None, {}, {"batchItemFailures": None}, failures()], ids=repr)
def test_an_answer_without_failures_is_a_success(work: MemoryQueue, answer: Any) -> None:
    """https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-errorhandling.html

    An empty or null list, or an empty or null response, is a complete success.
    """
    source = mapping(filled(work, "a", "b"), batch_size=10)

    source.finish(polled(source), answer)

    assert len(work) == 0


def test_what_an_answer_names_stays_hidden_and_the_rest_is_deleted(
    clock: ManualClock, work: MemoryQueue
) -> None:
    """https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-errorhandling.html

    Only the failed messages become visible again, when their visibility timeout ends.
    """
    source = mapping(filled(work, "a", "b", "c"), batch_size=10)

    source.finish(polled(source), failures("work-2"))

    assert work.bodies == ["b"]
    assert source.poll() is None
    clock.advance(seconds=VISIBILITY)
    assert [message.receive_count for message in polled(source).messages] == [2]


@pytest.mark.parametrize(
    "answer",
    [
        failures(""),
        failures(None),
        failures(1),
        failures("work-9"),
        failures("work-1", "work-9"),
        failures("work-1", ""),
        {"batchItemFailures": [{"messageId": "work-1"}]},
        {"batchItemFailures": [{}]},
        {"batchItemFailures": ["work-1"]},
        {"batchItemFailures": "work-1"},
        {"batchItemFailures": {"itemIdentifier": "work-1"}},
        {"batchItemFailures": False},
        "ok",
        [],
        200,
    ],
    ids=repr,
)
def test_an_answer_that_cannot_be_read_fails_the_whole_batch(
    work: MemoryQueue, answer: Any
) -> None:
    """https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-errorhandling.html

    An empty, null, misnamed or unknown itemIdentifier is a complete failure, and so is invalid
    JSON. What the page does not name is taken for that too: a message stays.
    """
    source = mapping(filled(work, "a", "b"), batch_size=10)

    source.finish(polled(source), answer)

    assert work.bodies == ["a", "b"]


def test_without_partial_responses_every_answer_is_a_success(work: MemoryQueue) -> None:
    """https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-errorhandling.html

    A function reports failures where ReportBatchItemFailures says so, and only there.
    """
    source = mapping(filled(work, "a"), reports_failures=False)

    source.finish(polled(source), failures("work-1"))

    assert len(work) == 0


def test_a_function_that_fails_keeps_all(clock: ManualClock, work: MemoryQueue) -> None:
    """https://docs.aws.amazon.com/lambda/latest/dg/with-sqs.html

    All messages of the batch become visible again after the visibility timeout.
    """
    source = mapping(filled(work, "a", "b"), batch_size=10)

    source.fail(polled(source))

    assert source.running == 0
    assert source.poll() is None
    clock.advance(seconds=VISIBILITY)
    assert len(polled(source).messages) == 2


def test_a_message_that_its_function_shows_again_comes_again(work: MemoryQueue) -> None:
    """The mapping leaves alone what the function has set."""
    source = mapping(filled(work, "a"))
    batch = polled(source)

    work.hide(batch.messages[0].receipt, 0)
    source.finish(batch, failures("work-1"))

    assert polled(source).messages[0].receive_count == 2


@pytest.mark.parametrize("fault", Fault)
def test_a_deletion_that_fails_is_not_heard_of(work: MemoryQueue, fault: Fault) -> None:
    source = mapping(filled(work, "a"))
    batch = polled(source)
    work.faults = lambda service, operation: fault

    source.finish(batch, None)

    assert len(work) == (1 if fault is Fault.BEFORE else 0)
    assert source.running == 0


def test_a_receive_that_fails_is_tried_again(work: MemoryQueue) -> None:
    source = mapping(filled(work, "a"))
    work.faults = lambda service, operation: Fault.BEFORE
    assert source.poll() is None

    work.faults = lambda service, operation: None

    assert polled(source).messages[0].receive_count == 1


def test_a_message_that_was_received_again_is_not_deleted_by_who_came_late(
    clock: ManualClock, work: MemoryQueue
) -> None:
    source = mapping(filled(work, "a"))
    late = polled(source)
    clock.advance(seconds=VISIBILITY)
    polled(source)

    source.finish(late, None)

    assert work.bodies == ["a"]


def event(batch: MappingBatch) -> dict[str, Any]:
    """Returns what Lambda hands to the function."""
    return {"Records": [_record(message) for message in batch.messages]}


def _record(message: Message) -> dict[str, Any]:
    return {
        "messageId": message.id,
        "receiptHandle": message.receipt,
        "body": message.body,
        "attributes": {
            "SentTimestamp": str(to_ms(message.sent_at)),
            "ApproximateReceiveCount": str(message.receive_count),
        },
        "eventSource": "aws:sqs",
    }


@pytest.mark.parametrize("failing", ["", "a", "b", "ab"])
def test_the_processors_own_answers_are_read_as_they_are_meant(
    work: MemoryQueue, failing: str
) -> None:
    source = mapping(filled(work, "a", "b"), batch_size=10)
    batch = polled(source)

    source.finish(
        batch, respond(event(batch), lambda records: [r["body"] in failing for r in records])
    )

    assert work.bodies == list(failing)
