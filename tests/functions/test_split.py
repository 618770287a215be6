"""The processor splits batches, and imports no handler for it."""

import json
import sys
from collections import Counter
from pathlib import Path
from secrets import token_hex
from typing import Any

import pytest

from tests.functions.account import copy_of
from tests.functions.bundles import build
from tests.functions.embedded_metrics import points
from tests.functions.faults import Fault, Faults
from tests.functions.inbox import Inbox
from webhook_inbox import providers
from webhook_inbox.domain.manifest import Manifest
from webhook_inbox.domain.model import Status
from webhookctl.local.processes import sink

SOURCE = '\n[sources.mail]\nprovider = "sendgrid"\ntypes = ["delivered", "bounce"]\n'


@pytest.fixture(scope="module")
def built(_sink: sink.Sink, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Manifest]:
    """A separate deployment with a source of batches and a handler for their items."""
    directory = tmp_path_factory.mktemp("batches") / "functions"
    url = f"http://127.0.0.1:{_sink.server_address[1]}"
    return directory, build(directory, sink_url=url, sources=SOURCE, laboratory=("mail",))


@pytest.fixture
def key(inbox: Inbox) -> str:
    """The private key that `mail` signs with."""
    pair = providers.load(inbox.manifest.sources["mail"]).pair
    assert pair is not None
    private, public = pair()
    inbox.account.set_secret("mail", public)
    return private


def items(*types: str) -> list[dict[str, Any]]:
    return [
        {"sg_event_id": f"mail-{n}", "event": type_, "timestamp": 1_767_225_600 + n, "cost": 1.10}
        for n, type_ in enumerate(types)
    ]


def deliver(inbox: Inbox, key: str, batch: list[dict[str, Any]]) -> str:
    """Delivers a batch and returns its event's id."""
    body = json.dumps(batch).replace("1.1}", "1.10}").encode()
    headers = inbox.sign("mail", body, secret=key)
    answer = inbox.post("mail", body, headers)
    assert (answer.status, answer.json["status"]) == (202, "accepted")
    return str(answer.json["event_id"])


def test_a_batch_is_split_and_each_item_handled(inbox: Inbox, key: str) -> None:
    batch = deliver(inbox, key, items("delivered", "open", "bounce"))
    [message] = inbox.account.receive()

    assert inbox.process(message) == []

    assert "handlers" not in sys.modules
    inbox.work()
    seen = dict(sys.modules["handlers.mail"].SEEN)
    assert sorted(seen) == ["mail-0", "mail-2"]
    assert seen["mail-0"].endswith(b'"cost": 1.10}')
    for event_id in seen:
        run = inbox.account.run("mail", event_id, "mail.note")
        assert run is not None
        assert (run.status, run.attempt_count) == (Status.DONE, 1)
    split = inbox.account.run("mail", batch, "split")
    assert split is not None
    assert split.progress == {"of": 3, "counts": {"accepted": 2, "ignored": 1}}


def test_a_batch_is_counted_by_its_items_alone(inbox: Inbox, key: str) -> None:
    deliver(inbox, key, items("delivered", "delivered"))

    inbox.work()

    accepted = [point.values for point in inbox.output.points() if point.name == "Accepted"]
    assert accepted == [[2]]


def test_the_results_of_the_items_are_counted_and_logged(inbox: Inbox, key: str) -> None:
    deliver(inbox, key, items("delivered", "open", "open"))
    [message] = inbox.account.receive()
    inbox.output.read()

    inbox.process(message)

    written = inbox.output.read()
    counted = [point for entry in written for point in points(entry)]
    assert ("Accepted", [1], {"source": "mail"}) in counted
    assert ("Runs", [1], {"handler": "split", "outcome": "done"}) in counted
    [line] = [entry for entry in written if entry.get("message") == "message done"]
    assert line["items"] == {"accepted": 1, "ignored": 2}


def test_ten_runs_are_sent_in_a_call(inbox: Inbox, key: str, faults: Faults) -> None:
    deliver(inbox, key, items(*["delivered"] * 25))
    [message] = inbox.account.receive()
    faults.clear()

    inbox.process(message)

    # One read and one update register the splitter.
    assert Counter(faults.calls) == {
        "GetItem": 3,
        "UpdateItem": 3,
        "PutItem": 25,
        "SendMessageBatch": 3,
    }


def test_large_batches_and_items_lie_in_the_bucket(inbox: Inbox, key: str) -> None:
    large = [{**item, "noise": token_hex(12_000)} for item in items("delivered", "delivered")]
    deliver(inbox, key, large)

    inbox.work()

    assert len(inbox.account.objects()) == 3
    seen = dict(sys.modules["handlers.mail"].SEEN)
    assert {name: json.loads(body) for name, body in seen.items()} == {
        item["sg_event_id"]: item for item in large
    }


@pytest.mark.parametrize("operation", ["PutItem", "SendMessageBatch"])
def test_an_outage_in_the_middle_costs_an_attempt_and_no_item(
    inbox: Inbox, key: str, faults: Faults, operation: str
) -> None:
    batch = deliver(inbox, key, items("delivered", "delivered"))
    [message] = inbox.account.receive()
    faults.set(operation, Fault.DOWN, skip=1 if operation == "PutItem" else 0)

    # A copy that cannot be sent leaves the message in the queue.
    kept = [message["MessageId"]] if operation == "SendMessageBatch" else []
    assert inbox.process(message) == kept

    failed = inbox.account.run("mail", batch, "split")
    assert failed is not None
    assert failed.status is Status.FAILED
    assert f"{operation}: ServiceUnavailable" in failed.last_error
    faults.clear()
    inbox.process(copy_of(message))
    inbox.work()
    assert sorted(dict(sys.modules["handlers.mail"].SEEN)) == ["mail-0", "mail-1"]
