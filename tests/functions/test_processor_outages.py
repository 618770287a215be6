"""AWS failing at every call of the processor, before and after its effect.

A message is deleted only once its run is settled, and when AWS is back and the lease is over,
the message that came back finishes the run.
"""

import random
from typing import Any

import pytest

from tests.functions.faults import Fault, Faults
from tests.functions.inbox import Inbox
from webhook_inbox.domain.model import Status

LARGE = b'{"type":"lab.fine","data":"%s"}' % random.Random(2).randbytes(60_000).hex().encode()
WHEN = pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
FAULTS = pytest.mark.parametrize(
    "fault", [Fault.THROTTLED, Fault.SILENT], ids=lambda f: f.name.lower()
)


@pytest.fixture
def message(inbox: Inbox) -> dict[str, Any]:
    """The message of a run whose event's body lies in S3."""
    inbox.module("processor")
    inbox.post("acme", LARGE, inbox.sign("acme", LARGE))
    [received] = inbox.account.receive()
    return received


def comes_back(inbox: Inbox, message: dict[str, Any]) -> None:
    """The lease ends, the message is received again, and the run is done."""
    run = inbox.account.run("acme", "evt-1", "lab.fine")
    if run is not None and run.status is Status.PROCESSING:
        inbox.account.change(run, claimed_until=1)
    assert inbox.process(message) == []
    settled = inbox.account.run("acme", "evt-1", "lab.fine")
    assert settled is not None
    assert settled.status is Status.DONE


@WHEN
@FAULTS
@pytest.mark.parametrize(
    ("operation", "skip"),
    [("GetItem", 0), ("UpdateItem", 0), ("UpdateItem", 1)],
    ids=["event", "claim", "settle"],
)
def test_a_call_that_fails_keeps_the_message(
    inbox: Inbox,
    faults: Faults,
    message: dict[str, Any],
    operation: str,
    skip: int,
    fault: Fault,
    after: bool,
) -> None:
    faults.set(operation, fault, after=after, skip=skip)

    assert inbox.process(message) == [message["MessageId"]]

    line = inbox.output.logs()[-1]
    assert line["outcome"] in {"unavailable", "failed"}
    faults.clear()
    comes_back(inbox, message)


@WHEN
@FAULTS
def test_a_body_that_cannot_be_read_is_waited_for_and_costs_no_attempt(
    inbox: Inbox, faults: Faults, message: dict[str, Any], fault: Fault, after: bool
) -> None:
    faults.set("GetObject", fault, after=after)

    assert inbox.process(message) == []

    run = inbox.account.run("acme", "evt-1", "lab.fine")
    assert run is not None
    assert (run.status, run.attempt_count) == (Status.DEFERRED, 0)
    assert "cannot be read" in run.last_error


@WHEN
def test_a_message_that_cannot_be_hidden_comes_back_later_and_no_worse(
    inbox: Inbox, faults: Faults, after: bool
) -> None:
    inbox.deliver("lab.permanent")
    [received] = inbox.account.receive()
    faults.set("ChangeMessageVisibility", Fault.DOWN, after=after)

    assert inbox.process(received) == [received["MessageId"]]

    [run] = [row for row in inbox.account.rows("event#") if row["sk"].startswith("run#")]
    assert run["status"] == "dead_letter"


@WHEN
def test_a_delayed_copy_that_cannot_be_sent_is_sent_when_the_message_comes_back(
    inbox: Inbox, faults: Faults, after: bool
) -> None:
    """The generation is raised before the copy is sent, so the old message must not just go."""
    inbox.deliver("lab.fine")
    [received] = inbox.account.receive()
    body = received["Body"].replace("lab.fine", "lab.of-tomorrow")
    foreign = {**received, "Body": body}
    faults.set("SendMessageBatch", Fault.DOWN, after=after)

    assert inbox.process(foreign) == [received["MessageId"]]

    faults.clear()
    assert inbox.process(foreign) == []
    assert "SendMessageBatch" in faults.calls
