"""The queue's requests, where no backend shows them or can be made to answer so."""

from datetime import timedelta
from typing import Any

import pytest

from tests.unit.adapters.aws.fake_client import FakeClient, refusal
from webhook_inbox.adapters.aws.sqs import SqsQueue
from webhook_inbox.domain.errors import Unavailable
from webhook_inbox.domain.ports import Backlog, Outgoing
from webhook_inbox.domain.quotas import MESSAGE_BYTES

URL = "https://sqs.us-east-1.amazonaws.com/123456789012/work"


def taken(*ids: int, failed: tuple[int, ...] = ()) -> dict[str, Any]:
    return {
        "Successful": [{"Id": str(n), "MessageId": f"m{n}"} for n in ids],
        "Failed": [{"Id": str(n), "SenderFault": n % 2 == 0, "Code": "X"} for n in failed],
    }


def messages(amount: int) -> list[Outgoing]:
    return [Outgoing(f"m{number}", delay=number) for number in range(amount)]


def batches(client: FakeClient) -> list[list[dict[str, Any]]]:
    return [parameters["Entries"] for _, parameters in client.calls]


def test_25_messages_are_three_batches() -> None:
    client = FakeClient(taken(*range(10)), taken(*range(10)), taken(*range(5)))

    assert SqsQueue(client, URL).send(messages(25)) == []

    assert [len(entries) for entries in batches(client)] == [10, 10, 5]
    assert batches(client)[1][2] == {"Id": "2", "MessageBody": "m12", "DelaySeconds": 12}
    assert all(parameters["QueueUrl"] == URL for _, parameters in client.calls)


def test_each_failed_entry_is_returned_whatever_the_cause() -> None:
    client = FakeClient(taken(0, 3, failed=(1, 2)))
    sent = messages(4)

    assert SqsQueue(client, URL).send(sent) == [sent[1], sent[2]]


def test_a_fifo_queue_is_sent_nothing_after_a_batch_that_it_did_not_take_whole() -> None:
    client = FakeClient(taken(*range(10)), taken(*range(9), failed=(9,)))
    sent = [Outgoing(f"m{number}", group="a", dedup=str(number)) for number in range(35)]

    assert SqsQueue(client, f"{URL}.fifo").send(sent) == [sent[19], *sent[20:]]

    assert len(client.calls) == 2


@pytest.mark.parametrize(("url", "fifo"), [(URL, False), (f"{URL}.fifo", True)])
def test_a_queue_s_url_tells_its_kind(url: str, *, fifo: bool) -> None:
    assert SqsQueue(FakeClient(), url).fifo is fifo


@pytest.mark.parametrize("answer", [{}, {"Successful": []}, {"Failed": []}])
def test_an_entry_that_is_not_answered_for_was_not_taken(answer: dict[str, Any]) -> None:
    sent = messages(2)

    assert SqsQueue(FakeClient(answer), URL).send(sent) == sent


def test_the_same_message_twice_is_two_entries() -> None:
    client = FakeClient(taken(1, failed=(0,)))
    message = Outgoing("x")

    assert SqsQueue(client, URL).send([message, message]) == [message]


def test_a_batch_that_fails_is_unavailable_and_the_next_is_not_sent() -> None:
    client = FakeClient(taken(*range(10)), refusal("InternalFailure", status=500))

    with pytest.raises(Unavailable, match="sqs SendMessageBatch"):
        SqsQueue(client, URL).send(messages(30))

    assert len(client.calls) == 2


def test_what_sqs_would_refuse_is_not_sent() -> None:
    client = FakeClient(taken(0))
    refused = [Outgoing("\x00"), Outgoing(""), Outgoing("x", delay=901)]

    assert SqsQueue(client, URL).send([*refused, Outgoing("good")]) == refused

    assert [entry["MessageBody"] for entry in batches(client)[0]] == ["good"]


def test_nothing_that_can_be_sent_is_no_call() -> None:
    client = FakeClient()

    assert SqsQueue(client, URL).send([Outgoing("")]) == [Outgoing("")]
    assert client.calls == []


def test_a_batch_is_no_longer_than_a_message_may_be() -> None:
    half = Outgoing("é" * (MESSAGE_BYTES // 4))
    client = FakeClient(taken(0, 1), taken(0))

    assert SqsQueue(client, URL).send([half, half, Outgoing("x")]) == []

    assert [len(entries) for entries in batches(client)] == [2, 1]


def test_a_fifo_queue_is_told_groups_and_ids_and_no_delay() -> None:
    client = FakeClient(taken(0, 1))
    sent = [Outgoing(f"m{n}", group="g", dedup=f"d{n}") for n in range(2)]

    assert SqsQueue(client, URL + ".fifo").send(sent) == []

    assert batches(client) == [
        [
            {
                "Id": str(n),
                "MessageBody": f"m{n}",
                "MessageGroupId": "g",
                "MessageDeduplicationId": f"d{n}",
            }
            for n in range(2)
        ]
    ]


def test_a_standard_queue_is_told_the_group_of_a_message_that_has_one() -> None:
    client = FakeClient(taken(0, 1))
    sent = [Outgoing("a", delay=7, group="acct_7"), Outgoing("b")]

    assert SqsQueue(client, URL).send(sent) == []

    assert batches(client) == [
        [
            {"Id": "0", "MessageBody": "a", "DelaySeconds": 7, "MessageGroupId": "acct_7"},
            {"Id": "1", "MessageBody": "b", "DelaySeconds": 0},
        ]
    ]


def test_neither_kind_of_queue_is_sent_what_the_other_takes() -> None:
    plain, grouped = Outgoing("x"), Outgoing("x", group="g", dedup="d")

    assert SqsQueue(FakeClient(), URL).send([grouped]) == [grouped]
    assert SqsQueue(FakeClient(), URL + ".fifo").send([plain]) == [plain]


def test_receiving_does_not_wait_and_asks_for_what_a_message_carries() -> None:
    client = FakeClient({})

    assert SqsQueue(client, URL).receive(7, hidden_for=30) == []

    [(method, parameters)] = client.calls
    assert method == "receive_message"
    assert parameters == {
        "QueueUrl": URL,
        "MaxNumberOfMessages": 7,
        "VisibilityTimeout": 30,
        "WaitTimeSeconds": 0,
        "MessageSystemAttributeNames": ["SentTimestamp", "ApproximateReceiveCount"],
    }


BACKLOG = {"Attributes": {"ApproximateNumberOfMessages": "12"}}


def test_a_backlog_without_metrics_has_no_age() -> None:
    assert SqsQueue(FakeClient(BACKLOG), URL).backlog() == Backlog(visible=12, oldest=None)


def test_a_backlogs_age_is_asked_for_by_the_queues_name() -> None:
    asked: list[str] = []

    def age(name: str) -> timedelta:
        asked.append(name)
        return timedelta(minutes=5)

    backlog = SqsQueue(FakeClient(BACKLOG), URL, age=age).backlog()

    assert backlog == Backlog(visible=12, oldest=timedelta(minutes=5))
    assert asked == ["work"]


@pytest.mark.parametrize("operation", ["hide", "receive", "delete", "backlog"])
def test_every_call_that_fails_is_unavailable(operation: str) -> None:
    queue = SqsQueue(FakeClient(refusal("RequestThrottled")), URL)
    attempts: dict[str, Any] = {
        "hide": lambda: queue.hide("r", 1),
        "receive": lambda: queue.receive(1, hidden_for=1),
        "delete": lambda: queue.delete("r"),
        "backlog": queue.backlog,
    }

    with pytest.raises(Unavailable, match="RequestThrottled"):
        attempts[operation]()
