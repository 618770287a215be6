"""`dlq list`: messages by lane, and the dead runs by handler and error."""

import pytest

from tests.webhookctl.commands.stage import Cli, Inbox, client


@pytest.fixture
def dlq(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> str:
    """The queue in moto whose messages SQS counts."""
    url = str(client("sqs").create_queue(QueueName="dead")["QueueUrl"])
    monkeypatch.setattr("tests.webhookctl.commands.stage.DEAD_URL", url)
    return url


def send(url: str, messages: int) -> None:
    for number in range(messages):
        client("sqs").send_message(QueueUrl=url, MessageBody=f"message {number}")


def test_an_empty_queue_is_one_line(cli: Cli, inbox: Inbox, dlq: str) -> None:
    shown = cli("dlq", "list")
    assert (shown.code, shown.err) == (0, "")
    assert shown.out.split() == [
        *("LANE", "MESSAGES", "OLDEST", "DEAD_RUNS", "NOTE"),
        *("default", "0", "-", "0", "-"),
    ]


@pytest.mark.moto
def test_dead_runs_are_grouped_by_handler_and_error(cli: Cli, inbox: Inbox, dlq: str) -> None:
    for number in range(3):
        inbox.dead(f"evt-{number}")
    send(dlq, 3)
    lane, cause = cli("dlq", "list", "--json").objects
    assert (lane["lane"], lane["messages"], lane["dead_runs"]) == ("default", 3, 3)
    assert (cause["handler"], cause["runs"]) == ("acme.fulfil", 3)
    assert cause["oldest"].startswith("2026-01-01T00:00:")
    assert lane["oldest_seconds"] == 0
    inbox.clock.advance(days=10)
    [_, row, *_] = cli("dlq", "list").out.splitlines()
    assert row.split()[:4] == ["default", "3", "10", "d"]
    shown = cli("dlq", "list")
    assert cause["error"] in shown.out
    assert "`webhookctl replay --handler acme.fulfil`" in shown.err


@pytest.mark.parametrize(
    ("messages", "note"),
    [(1, "1 fewer: messages that SQS has yet to move"), (3, "1 more: messages of runs that are")],
)
def test_a_difference_is_explained(
    cli: Cli, inbox: Inbox, dlq: str, messages: int, note: str
) -> None:
    inbox.dead("evt-1")
    inbox.dead("evt-2")
    send(dlq, messages)
    assert note in cli("dlq", "list").out


def test_it_reads_a_bounded_number_of_dead_runs(cli: Cli, inbox: Inbox, dlq: str) -> None:
    for number in range(3):
        inbox.dead(f"evt-{number}")
    lane, cause = cli("dlq", "list", "--limit", "2", "--json").objects
    assert (lane["dead_runs"], lane["dead_runs_is_complete"], cause["runs"]) == (2, False, 2)
    assert "at least 2" in cli("dlq", "list", "--limit", "2").out


def test_it_receives_no_message(cli: Cli, inbox: Inbox, dlq: str) -> None:
    send(dlq, 1)
    cli("dlq", "list")
    [message] = client("sqs").receive_message(
        QueueUrl=dlq, MessageSystemAttributeNames=["ApproximateReceiveCount"]
    )["Messages"]
    assert message["Attributes"]["ApproximateReceiveCount"] == "1"


def test_a_queue_that_cannot_be_read_is_one_line(cli: Cli, inbox: Inbox) -> None:
    shown = cli("dlq", "list")
    assert shown.code == 1
    assert shown.err.startswith("webhookctl: the dead-letter queues cannot be read: ")
