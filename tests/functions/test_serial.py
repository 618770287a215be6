"""A serial lane's functions: what ingest sends, what its processor answers, counts and logs."""

import json
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from moto import mock_aws

from tests.contract.resources import create_queues
from tests.functions.account import Account, open_account
from tests.functions.bundles import build
from tests.functions.embedded_metrics import points
from tests.functions.inbox import SECRET, Inbox
from tests.functions.test_processor import again
from webhook_inbox.domain.manifest import Manifest
from webhook_inbox.domain.model import Status
from webhook_inbox.queue.line import TURN
from webhookctl.local.processes import sink

Message = dict[str, Any]
LANE = "accounts"


class SerialAccount(Account):
    """An account with a FIFO lane beside the default one; its processor is that lane's."""

    @property
    def environment(self) -> dict[str, str]:
        return {
            **super().environment,
            "DLQ_NAMES": json.dumps({LANE: self.dead_letters.rpartition("/")[2]}),
            "LANE": LANE,
            "MAX_RECEIVE_COUNT": "1000",
        }


@pytest.fixture(scope="module")
def built(_sink: sink.Sink, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Manifest]:
    directory = tmp_path_factory.mktemp("serial") / "functions"
    return directory, build(directory, sink_url="http://127.0.0.1:1", laboratory=(LANE,))


@pytest.fixture
def account() -> Iterator[Account]:
    with mock_aws():
        plain = open_account()
        sqs = plain.clients["sqs"]
        queue, dead = create_queues(sqs, f"inbox-{LANE}", max_receive_count=1000, fifo=True)
        opened = SerialAccount(
            plain.clients, plain.table_name, plain.bucket, queue, dead, standard=plain.queue
        )
        opened.set_secret("acme", SECRET)
        yield opened


def deliver(inbox: Inbox, event_id: str, type_: str = "booking", **content: Any) -> None:
    assert inbox.deliver(type_, event_id=event_id, **content).status == 202


def handled(inbox: Inbox) -> list[str]:
    inbox.module("processor")
    found: list[str] = import_module("handlers.accounts").HANDLED
    return found


def test_ingest_sends_into_the_group_of_the_account(inbox: Inbox) -> None:
    deliver(inbox, "e1", account="a")
    deliver(inbox, "e2", account="b")
    deliver(inbox, "e3")

    groups = [message["Attributes"]["MessageGroupId"] for message in inbox.account.receive()]

    assert sorted(groups) == ["?accounts.book#e3", "accounts.book#a", "accounts.book#b"]
    assert inbox.account.receive(inbox.account.standard) == []


def test_the_processor_works_them_off_in_order(inbox: Inbox) -> None:
    for event_id in ("e3", "e1", "e2"):
        deliver(inbox, event_id, account="a")

    inbox.work()

    assert handled(inbox) == ["e3", "e1", "e2"]


def test_a_failed_one_stays_and_is_hidden_until_it_is_due(inbox: Inbox) -> None:
    deliver(inbox, "e1", account="a", mood="burn")
    deliver(inbox, "e2", account="a")
    [message, *_] = inbox.account.receive()

    assert inbox.process(message) == [message["MessageId"]]

    run = inbox.account.run("acme", "e1", "accounts.book")
    assert run is not None
    assert (run.status, run.generation, run.ordering_key) == (Status.FAILED, 0, "a")


def test_a_dead_one_is_deleted_counted_for_its_alarm_and_logged_as_an_error(
    inbox: Inbox,
) -> None:
    deliver(inbox, "e1", account="a", mood="refuse")
    [message] = inbox.account.receive()
    inbox.output.read()

    assert inbox.process(message) == []

    written = inbox.output.read()
    counted = [point for entry in written for point in points(entry)]
    assert ("Runs", [1], {"handler": "accounts.book", "outcome": "dead"}) in counted
    [logged] = [entry for entry in written if "level" in entry]
    assert (logged["level"], logged["outcome"]) == ("ERROR", "dead")
    assert inbox.account.receive(inbox.account.dead_letters) == []


def test_one_that_waits_for_a_dead_one_waits_in_the_ledger(inbox: Inbox) -> None:
    deliver(inbox, "e1", "seal", account="a", mood="refuse")
    deliver(inbox, "e2", "seal", account="a")
    first, second = inbox.account.receive()
    inbox.process(first)

    assert inbox.process(second) == []

    run = inbox.account.run("acme", "e2", "accounts.seal")
    assert run is not None
    assert (run.status, run.waits_for, run.parked) == (Status.DEFERRED, TURN, True)
    assert handled(inbox) == ["e1"]


def test_a_message_that_returns_after_its_run_was_parked_is_deleted(inbox: Inbox) -> None:
    deliver(inbox, "e1", "seal", account="a", mood="refuse")
    deliver(inbox, "e2", "seal", account="a")
    first, second = inbox.account.receive()
    inbox.process(first)
    inbox.process(second)
    inbox.output.read()

    assert inbox.process(again(second)) == []

    assert [entry["outcome"] for entry in inbox.output.logs()] == ["deferred"]


def test_replay_sends_into_the_group_of_the_account(inbox: Inbox) -> None:
    deliver(inbox, "e1", "seal", account="a", mood="refuse")
    inbox.process(inbox.account.receive()[0])

    report = inbox.invoke("replay", {"event_ids": ["e1"]}, remaining=300)

    assert report["counts"] == {"replayed": 1}
    [message] = inbox.account.receive()
    assert message["Attributes"]["MessageGroupId"] == "accounts.seal#a"
