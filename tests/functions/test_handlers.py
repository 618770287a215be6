"""The repository's own handlers against a downstream with idempotency keys, and broken modules."""

import json
from dataclasses import replace
from importlib import invalidate_caches
from pathlib import Path

import pytest

from tests.functions.account import copy_of
from tests.functions.inbox import Inbox
from webhook_inbox.domain.model import Status
from webhookctl.local.processes.sink import Sink

EVENTS = Path(__file__).parents[2] / "events" / "ingest"


def deliver_sample(inbox: Inbox, sample: str, *, event_id: str = "evt-1") -> None:
    path = EVENTS / f"{sample}.json"
    source, event_type = path.parent.name, path.stem.partition("__")[0]
    body = path.read_bytes()
    headers = inbox.sign(source, body, event_id=event_id, event_type=event_type)
    assert inbox.post(source, body, headers).json["status"] == "accepted"


def statuses(inbox: Inbox) -> dict[str, str]:
    rows = inbox.account.rows("event#")
    return {row["handler"]: row["status"] for row in rows if row["sk"].startswith("run#")}


@pytest.mark.parametrize(
    ("sample", "effects"),
    [
        (
            "github/issues.opened__label",
            {"announce:github.announce:github:evt-1": "/messages",
             "count:github.count:github:evt-1": "/counts"},
        ),
        ("github/push__main", {"count:github.count:github:evt-1": "/counts"}),
        (
            "stripe/invoice.payment_succeeded__subscription",
            {"create-order:invoice:in_1RQ4zL2eZvKYlo2C": "/orders"},
        ),
        (
            "stripe/checkout.session.completed__paid",
            {"welcome:stripe.welcome:stripe:evt_1RcheckoutCompleted": "/welcomes"},
        ),
        (
            "stripe/invoice.payment_failed__card",
            {"tell:slack.tell:stripe:evt_1RinvoicePaymentFailed": "/chat.postMessage"},
        ),
        (
            "stripe/invoice.finalization_failed__tax",
            {"stripe-invoice-in_1RQ6bN2eZvKYlo2C": "/v2/enqueue"},
        ),
        (
            "slack/app_mention__channel",
            {"task:agent.hand_over:slack:Ev123ABC456": "/agent/tasks"},
        ),
    ],
)  # fmt: skip
def test_a_sample_event_has_its_effects_downstream_once(
    inbox: Inbox, sink: Sink, sample: str, effects: dict[str, str]
) -> None:
    inbox.account.set_secret("pagerduty", "a-routing-key")
    deliver_sample(inbox, sample)

    inbox.work()

    seen = sink.effects.all()
    assert {key: effect["path"] for key, effect in seen.items()} == effects
    assert {effect["requests"] for effect in seen.values()} == {1}
    assert set(statuses(inbox).values()) == {"done"}


def test_an_attempt_after_a_lost_worker_does_not_repeat_what_is_recorded(
    inbox: Inbox, sink: Sink
) -> None:
    """G4: the worker recorded the order and died before it could settle."""
    deliver_sample(inbox, "stripe/invoice.payment_succeeded__subscription")
    [message] = inbox.account.receive()
    inbox.process(message)
    [row] = [row for row in inbox.account.rows("event#") if row["sk"].startswith("run#")]
    run = inbox.account.run(row["source"], row["event_id"], row["handler"])
    assert run is not None
    inbox.account.change(run, status="processing", claimed_until=1)

    assert inbox.process(message) == []

    [effect] = sink.effects.all().values()
    assert effect["requests"] == 1
    assert statuses(inbox) == {"stripe.fulfil": "done"}


def test_an_invoice_that_is_none_is_dead_at_once(inbox: Inbox, sink: Sink) -> None:
    body = b'{"id":"evt_1","type":"invoice.payment_succeeded","data":{"object":{"id":7}}}'
    inbox.post("stripe", body, inbox.sign("stripe", body))
    [message] = inbox.account.receive()

    assert inbox.process(message) == [message["MessageId"]]

    run = inbox.account.run("stripe", "evt_1", "stripe.fulfil")
    assert run is not None
    assert run.status is Status.DEAD_LETTER
    assert run.last_error.startswith("permanent: the body is not a valid InvoiceEvent")
    assert sink.effects.all() == {}


def test_a_downstream_that_is_not_there_is_tried_again(
    inbox: Inbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    destinations = inbox.module("processor").manifest.destinations
    model = destinations["model"]
    monkeypatch.setitem(destinations, "model", replace(model, base_url="http://127.0.0.1:9"))
    deliver_sample(inbox, "slack/app_mention__channel")
    [message] = inbox.account.receive()

    inbox.process(message)

    run = inbox.account.run("slack", "Ev123ABC456", "agent.hand_over")
    assert run is not None
    assert run.status is Status.FAILED
    assert run.last_error.startswith("model: POST /agent/tasks: no connection could be made")


@pytest.mark.parametrize(
    ("broken", "error"),
    [
        ("import a_library_nobody_added\n", "ModuleNotFoundError: No module named"),
        ("def touch(:\n", "SyntaxError: "),
        ("raise SystemExit('no')\n", "SystemExit: no"),
        ("x = 1\n", "handlers.fragile does not define 'fragile.touch'"),
    ],
    ids=["import", "syntax", "exit", "undefined"],
)
def test_a_module_that_cannot_be_imported_fails_only_its_own_runs_until_it_is_fixed(
    inbox: Inbox, bundle: Path, broken: str, error: str
) -> None:
    """G8: intake goes on, the others are untouched, and the fix needs no redelivery."""
    module = bundle / "handlers" / "fragile.py"
    whole = module.read_text()
    module.write_text(broken)
    assert inbox.deliver("lab.fragile").status == 202
    assert inbox.deliver("lab.fine", event_id="evt-2").status == 202
    messages = {json.loads(m["Body"])["handler"]: m for m in inbox.account.receive()}

    kept = inbox.process(*messages.values())

    assert kept == []
    run = inbox.account.run("acme", "evt-1", "fragile.touch")
    assert run is not None
    assert run.status is Status.FAILED
    assert run.last_error.startswith(error)
    assert statuses(inbox)["lab.fine"] == "done"
    if error.startswith("handlers."):  # imported once, it needs a new process, as on AWS
        inbox.started.clear()
    module.write_text(whole)
    invalidate_caches()
    assert inbox.process(copy_of(messages["fragile.touch"])) == []
    assert statuses(inbox) == {"fragile.touch": "done", "lab.fine": "done"}
