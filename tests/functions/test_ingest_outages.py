"""AWS throttling, down, denying and silent at every call of ingest, before and after its effect.

Whatever fails, two things hold: what is acknowledged is stored and enqueued, and once AWS is
back the provider's next retry ends in one event with every run enqueued.
"""

import random
import socket
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from tests.functions.account import Account
from tests.functions.conftest import Start
from tests.functions.faults import Fault, Faults
from tests.functions.inbox import Answer, Inbox

# Slack, Zoom and Discord hang up after 3 s.
LIMIT = 2.5
# Does not compress to what fits into a row.
LARGE = b'{"type":"lab.fine","data":"%s"}' % random.Random(1).randbytes(60_000).hex().encode()
WHEN = pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
Post = Callable[[], Answer]


def faulty(*kinds: Fault) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("fault", kinds, ids=lambda fault: fault.name.lower())


def asks_again(answer: Answer) -> None:
    """The provider is asked to send it again and learns nothing else."""
    assert (answer.status, answer.body) == (503, '{"status": "unavailable"}')
    assert answer.headers == {"content-type": "application/json", "retry-after": "5"}


def asks_again_in_time(answer: Answer) -> None:
    """So that the provider hears it; only an inbox that is hurried keeps to its time."""
    asks_again(answer)
    assert answer.seconds < LIMIT


def enqueued(inbox: Inbox) -> None:
    """There is one event, and a message for each of its runs; a second one does no harm."""
    [event] = [row for row in inbox.account.rows("event#") if row["sk"] == "event"]
    assert event["runs"]
    assert set(inbox.account.handlers_sent()) == set(event["runs"])


def heals(inbox: Inbox, faults: Faults, post: Post) -> None:
    """AWS is back, the provider retries, and all is as if nothing had been."""
    faults.clear()
    assert post().status in {200, 202}
    enqueued(inbox)


@pytest.fixture
def small(inbox: Inbox) -> Post:
    return lambda: inbox.deliver("lab.fine")


@pytest.fixture
def large(inbox: Inbox) -> Post:
    headers = inbox.sign("acme", LARGE)
    return lambda: inbox.post("acme", LARGE, headers)


@pytest.fixture
def guarded(inbox: Inbox) -> Post:
    body = b'{"action":"opened","issue":{}}'
    headers = inbox.sign("github", body, event_type="issues.opened")
    return lambda: inbox.post("github", body, headers)


@WHEN
@faulty(Fault.THROTTLED, Fault.DENIED, Fault.SILENT)
@pytest.mark.parametrize("operation", ["GetSecretValue", "PutItem", "SendMessageBatch"])
def test_a_call_that_fails_asks_for_the_delivery_again(
    inbox: Inbox, faults: Faults, small: Post, operation: str, fault: Fault, after: bool
) -> None:
    faults.set(operation, fault, after=after)

    asks_again(small())

    heals(inbox, faults, small)


@WHEN
@faulty(Fault.THROTTLED, Fault.SILENT)
@pytest.mark.parametrize("operation", ["GetItem", "PutObject", "PutItem"])
def test_a_call_that_fails_for_a_large_body_asks_for_it_again(
    inbox: Inbox, faults: Faults, large: Post, operation: str, fault: Fault, after: bool
) -> None:
    faults.set(operation, fault, after=after)

    asks_again(large())

    heals(inbox, faults, large)


@WHEN
@faulty(Fault.SILENT)
@pytest.mark.parametrize(
    "operation", ["GetSecretValue", "GetItem", "PutObject", "PutItem", "SendMessageBatch"]
)
def test_a_call_that_fails_once_goes_unnoticed(
    inbox: Inbox, faults: Faults, large: Post, operation: str, fault: Fault, after: bool
) -> None:
    faults.set(operation, fault, after=after, times=1)

    answer = large()

    assert (answer.status, answer.json["status"]) == (202, "accepted")
    enqueued(inbox)


@WHEN
@faulty(Fault.THROTTLED, Fault.SILENT)
@pytest.mark.parametrize("operation", ["PutItem", "Query", "SendMessageBatch"])
def test_a_duplicate_that_cannot_heal_its_event_is_not_acknowledged(
    inbox: Inbox, faults: Faults, small: Post, operation: str, fault: Fault, after: bool
) -> None:
    small()
    for message in inbox.account.receive():
        inbox.account.delete(message)
    faults.set(operation, fault, after=after)

    asks_again(small())

    heals(inbox, faults, small)


@WHEN
@faulty(Fault.DOWN, Fault.SILENT)
def test_a_guard_that_cannot_be_written_asks_for_the_delivery_again(
    inbox: Inbox, faults: Faults, guarded: Post, fault: Fault, after: bool
) -> None:
    faults.set("PutItem", fault, after=after)

    asks_again(guarded())

    heals(inbox, faults, guarded)


@WHEN
@pytest.mark.parametrize("operation", ["UpdateItem", "PutItem"])
def test_a_delivery_that_cannot_be_kept_without_a_secret_is_asked_for_again(
    inbox: Inbox, faults: Faults, operation: str, after: bool
) -> None:
    headers = inbox.sign("cycles", b"{}")
    faults.set(operation, Fault.DOWN, after=after)

    asks_again(inbox.post("cycles", b"{}", headers))


@WHEN
def test_a_conflict_that_cannot_be_kept_is_not_reported_as_one(
    inbox: Inbox, faults: Faults, small: Post, after: bool
) -> None:
    """Else a 409 would be the end of it, with nothing to look at."""
    large_conflict = inbox.sign("acme", LARGE)
    small()
    faults.set("PutObject", Fault.DOWN, after=after)

    asks_again(inbox.post("acme", LARGE, large_conflict))

    faults.clear()
    assert inbox.post("acme", LARGE, large_conflict).status == 409


def test_messages_that_the_queue_refuses_one_by_one_are_not_acknowledged(
    inbox: Inbox, faults: Faults
) -> None:
    """SQS answers 200 for a batch of which it took a part."""

    def refuse_the_last(answer: dict[str, Any]) -> None:
        entry = answer["Successful"].pop()
        answer["Failed"] = [{"Id": entry["Id"], "Code": "InternalError", "SenderFault": False}]

    faults.rewrite("SendMessageBatch", refuse_the_last)

    asks_again(inbox.deliver("lab.both"))

    heals(inbox, faults, lambda: inbox.deliver("lab.both"))


def test_calls_that_all_take_long_still_end_in_time(
    start: Start, account: Account, faults: Faults
) -> None:
    """None fails; there is just no time left for the last one."""
    inbox = start(account, hurried=True)
    for operation in ("GetSecretValue", "PutItem", "SendMessageBatch"):
        faults.rewrite(operation, lambda _: time.sleep(0.9))

    asks_again_in_time(inbox.deliver("lab.fine"))

    inbox.module("ingest").budget._total = 60.0
    heals(inbox, faults, lambda: inbox.deliver("lab.fine"))


def test_a_cached_secret_outlives_an_outage_of_its_store(
    inbox: Inbox, faults: Faults, small: Post
) -> None:
    small()
    copies = inbox.module("ingest").ingest._secrets._copies
    copies[""] = replace(copies[""], read_at=copies[""].read_at - timedelta(minutes=30))
    faults.set("GetSecretValue", Fault.DOWN)

    assert small().status == 200


def test_a_fault_of_our_own_asks_for_the_delivery_again_and_tells_nothing(
    inbox: Inbox, faults: Faults, small: Post
) -> None:
    def bug(_: dict[str, Any]) -> None:
        raise ZeroDivisionError("a bug of ours")

    faults.rewrite("PutItem", bug)

    answer = small()

    assert (answer.status, answer.body) == (503, '{"status": "broken"}')
    assert answer.headers == {"content-type": "application/json", "retry-after": "60"}
    [line] = inbox.output.logs()
    assert (line["level"], line["outcome"]) == ("ERROR", "broken")
    assert "ZeroDivisionError: a bug of ours" in line["detail"]
    assert "webhook_inbox/adapters/aws/dynamodb.py" in line["detail"]
    heals(inbox, faults, small)


# -- sockets in earnest


@pytest.fixture
def closed_port() -> str:
    """An endpoint that refuses every connection."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    return f"http://127.0.0.1:{port}"


@pytest.fixture
def silent_port() -> Iterator[str]:
    """An endpoint that takes every connection and never answers."""
    with socket.create_server(("127.0.0.1", 0), backlog=64) as server:
        yield f"http://127.0.0.1:{server.getsockname()[1]}"


@pytest.mark.parametrize("service", ["", "_DYNAMODB", "_S3", "_SQS"])
@pytest.mark.parametrize("port", ["closed_port", "silent_port"])
def test_an_endpoint_that_is_dead_is_answered_for_in_time(
    start: Start,
    account: Account,
    monkeypatch: pytest.MonkeyPatch,
    request: pytest.FixtureRequest,
    service: str,
    port: str,
) -> None:
    """The first delivery of a cold function included."""
    monkeypatch.setenv(f"AWS_ENDPOINT_URL{service}", request.getfixturevalue(port))
    inbox = start(account, hurried=True)
    headers = inbox.sign("acme", LARGE)

    asks_again_in_time(inbox.post("acme", LARGE, headers))
