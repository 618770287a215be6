"""The schedule's invocations: what is found, what is done, and what is reported."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.functions.faults import Fault, Faults
from tests.functions.inbox import Inbox
from webhook_inbox.adapters.memory import ManualClock
from webhook_inbox.domain.model import Status
from webhook_inbox.domain.ports import Change
from webhook_inbox.domain.timestamps import to_ms, to_seconds
from webhook_inbox.ledger.schema import RECEIVED_SHARDS, received_bucket
from webhook_inbox.reconciler.received import CURSORS

Minute = Callable[[int], datetime]
SCHEDULE = {"source": "aws.events", "detail-type": "Scheduled Event", "detail": {}}


@pytest.fixture(autouse=True)
def _passed_before(inbox: Inbox) -> None:
    """Continues the passes of two hours ago; an inbox's first pass reads the last day."""
    at = to_ms(datetime.now(UTC) - timedelta(hours=2))
    positions = {str(shard): at for shard in range(RECEIVED_SHARDS)}
    inbox.account.table.update(CURSORS, Change(set={"first": positions, "second": positions}))


@pytest.fixture
def minute(inbox: Inbox, monkeypatch: pytest.MonkeyPatch) -> Minute:
    """Sets the minute of the hour that the reconciler sees, and no other function."""

    def at(number: int) -> datetime:
        now = datetime.now(UTC).replace(minute=number, second=30)
        module = inbox.module("reconciler")
        clock = ManualClock(now)
        monkeypatch.setattr(module, "clock", clock)
        monkeypatch.setattr(module.reconciler, "_clock", clock)
        return now

    return at


def age(inbox: Inbox, received_at: datetime) -> None:
    """Makes the event `evt-1` one that was received then."""
    row = inbox.account.event("acme", "evt-1")
    assert row is not None
    bucket = received_bucket(received_at, "evt-1")
    inbox.account.table.put({**row, "received_at": to_ms(received_at), "received_bucket": bucket})


def lose_messages(inbox: Inbox) -> None:
    for message in inbox.account.receive():
        inbox.account.delete(message)


def test_a_pass_with_nothing_to_do_says_so(inbox: Inbox, minute: Minute) -> None:
    minute(1)

    report = inbox.invoke("reconciler", SCHEDULE, remaining=300)

    assert report == {"counts": {}, "complete": True, "errors": []}
    [line] = inbox.output.logs()
    assert (line["level"], line["message"]) == ("INFO", "reconciler pass")
    assert line["report"] == report


@pytest.mark.parametrize("event", [SCHEDULE, {}, None, []], ids=str)
def test_whatever_invokes_it_starts_the_same_pass(inbox: Inbox, event: Any) -> None:
    assert inbox.invoke("reconciler", event, remaining=300)["complete"]


def test_an_event_that_was_never_enqueued_is_adopted(inbox: Inbox, minute: Minute) -> None:
    """G1: a crash between put and send, and a provider that never retries."""
    inbox.deliver("lab.fine")
    lose_messages(inbox)
    age(inbox, minute(25) - timedelta(minutes=4))

    report = inbox.invoke("reconciler", SCHEDULE, remaining=300)

    assert report["counts"] == {"adopted": 1}
    assert inbox.account.handlers_sent() == ["lab.fine"]
    run = inbox.account.run("acme", "evt-1", "lab.fine")
    assert run is not None
    assert run.status is Status.PENDING


def test_an_event_on_its_way_is_left_alone(inbox: Inbox, minute: Minute) -> None:
    inbox.deliver("lab.fine")
    age(inbox, minute(25) - timedelta(minutes=2))

    report = inbox.invoke("reconciler", SCHEDULE, remaining=300)

    assert report["counts"] == {}


def test_a_parked_run_that_is_due_is_sent(inbox: Inbox, minute: Minute) -> None:
    now = minute(1)
    inbox.deliver("lab.deferred")
    inbox.work()
    run = inbox.account.run("acme", "evt-1", "lab.wait")
    assert run is not None
    assert run.parked
    inbox.account.change(run, next_attempt_at=to_ms(now) - 1, due_at=to_ms(now) - 1)

    report = inbox.invoke("reconciler", SCHEDULE, remaining=300)

    assert report["counts"] == {"resumed": 1}
    assert inbox.account.handlers_sent() == ["lab.wait"]


def test_dead_letters_of_settled_runs_are_removed_once_an_hour(
    inbox: Inbox, minute: Minute
) -> None:
    inbox.deliver("lab.fine")
    [message] = inbox.account.receive()
    inbox.process(message)
    inbox.account.clients["sqs"].send_message(
        QueueUrl=inbox.account.dead_letters, MessageBody=message["Body"]
    )
    minute(37)

    report = inbox.invoke("reconciler", SCHEDULE, remaining=300)

    assert report["counts"] == {"dlq_removed": 1}
    assert inbox.account.receive(inbox.account.dead_letters) == []


def test_each_thing_done_is_counted(inbox: Inbox, minute: Minute) -> None:
    inbox.deliver("lab.fine")
    lose_messages(inbox)
    age(inbox, minute(25) - timedelta(minutes=4))
    inbox.output.read()

    inbox.invoke("reconciler", SCHEDULE, remaining=300)

    assert inbox.output.points() == [("Degraded", [1], {})]


def test_a_pass_without_work_writes_no_metric(inbox: Inbox, minute: Minute) -> None:
    minute(1)
    inbox.invoke("reconciler", SCHEDULE, remaining=300)
    assert inbox.output.points() == []


def test_the_most_overdue_run_is_measured(inbox: Inbox, minute: Minute) -> None:
    now = minute(1)
    inbox.deliver("lab.deferred")
    inbox.work()
    run = inbox.account.run("acme", "evt-1", "lab.wait")
    assert run is not None
    due = to_ms(now - timedelta(seconds=90))
    inbox.account.change(run, next_attempt_at=due, due_at=due)
    inbox.output.read()

    inbox.invoke("reconciler", SCHEDULE, remaining=300)

    assert ("OldestDue", [90], {}) in inbox.output.points()


def test_a_run_that_is_given_up_is_counted_as_dead_by_its_handler(
    inbox: Inbox, minute: Minute
) -> None:
    now = minute(1)
    inbox.deliver("lab.deferred")
    inbox.work()
    run = inbox.account.run("acme", "evt-1", "lab.wait")
    assert run is not None
    inbox.account.change(run, due_at=to_ms(now) - 1, expires_at=to_seconds(now), deaths=2)
    inbox.output.read()

    inbox.invoke("reconciler", SCHEDULE, remaining=300)

    counted = inbox.output.points()
    assert ("Runs", [1], {"handler": "lab.wait", "outcome": "dead"}) in counted
    assert ("RunsGivenUp", [1], {}) in counted
    assert ("DeadAgain", [1], {}) in counted


def test_a_run_that_cannot_be_sent_is_reported_and_the_rest_goes_on(
    inbox: Inbox, minute: Minute, faults: Faults
) -> None:
    inbox.deliver("lab.fine")
    lose_messages(inbox)
    age(inbox, minute(25) - timedelta(minutes=4))
    inbox.output.read()
    faults.set("SendMessageBatch", Fault.DOWN)

    report = inbox.invoke("reconciler", SCHEDULE, remaining=300)

    assert report["counts"] == {"failed": 1}
    [error] = report["errors"]
    assert error.startswith("Unavailable: sqs SendMessageBatch: ServiceUnavailable")
    [line] = inbox.output.logs()
    assert line["level"] == "WARNING"


def test_a_pass_whose_time_is_up_says_that_it_is_not_complete(inbox: Inbox, minute: Minute) -> None:
    inbox.deliver("lab.fine")
    lose_messages(inbox)
    age(inbox, minute(25) - timedelta(minutes=4))

    report = inbox.invoke("reconciler", SCHEDULE, remaining=9)

    assert (report["complete"], report["counts"]) == (False, {})
    assert ("Degraded", [1], {}) in inbox.output.points()


def test_a_ledger_that_is_down_fails_the_invocation_and_so_its_alarm(
    inbox: Inbox, minute: Minute, faults: Faults
) -> None:
    minute(1)
    faults.set("Query", Fault.DOWN)

    with pytest.raises(Exception, match="dynamodb Query: ServiceUnavailable"):
        inbox.invoke("reconciler", SCHEDULE, remaining=300)
