"""The example whose key stands in the body: an alert is opened once, and resolved."""

from collections.abc import Callable
from typing import Any

import pytest

from webhook_inbox.testing import HandlerRun, Inbox

KEY = "stripe-invoice-in_1"


@pytest.fixture
def inbox(production: Callable[..., Inbox]) -> Inbox:
    return production()


def event(type_: str, created: int, *, id_: str = "") -> dict[str, Any]:
    return {
        "id": id_ or f"evt_{created}",
        "type": type_,
        "created": created,
        "data": {"object": {"id": "in_1"}},
    }


def failed(inbox: Inbox, created: int = 1, **options: Any) -> HandlerRun:
    return inbox.run("pagerduty.page", event("invoice.finalization_failed", created), **options)


def finalized(inbox: Inbox, created: int = 2) -> HandlerRun:
    return inbox.run("pagerduty.page", event("invoice.finalized", created))


def actions(inbox: Inbox) -> list[str]:
    return [request.json["event_action"] for request in inbox.destinations["pagerduty"].requests]


def test_an_invoice_that_cannot_be_finalized_pages(inbox: Inbox) -> None:
    run = failed(inbox)

    assert run.status == "done"
    [request] = inbox.destinations["pagerduty"].requests
    assert request.path == "/v2/enqueue"
    assert request.json == {
        "routing_key": "testing-pagerduty",
        "event_action": "trigger",
        "dedup_key": KEY,
        "payload": {
            "summary": "Invoice in_1 cannot be finalized",
            "source": "stripe",
            "severity": "error",
        },
    }


def test_the_alert_is_resolved_under_the_same_key(inbox: Inbox) -> None:
    failed(inbox)
    inbox.destinations["pagerduty"].forgets_keys()  # an alert, not a request, is what it knows
    run = finalized(inbox)
    assert run.status == "done"
    assert actions(inbox) == ["trigger", "resolve"]
    assert {request.key for request in inbox.destinations["pagerduty"].requests} == {KEY}


def test_an_alert_whose_worker_died_is_the_same_one(inbox: Inbox) -> None:
    run = failed(inbox, crash_before_commit="page").settle()
    assert (run.status, run.effects["page"].starts) == ("done", 2)
    assert len(inbox.destinations["pagerduty"].done) == 1


def test_an_alert_that_comes_after_its_resolution_is_not_opened(inbox: Inbox) -> None:
    finalized(inbox, created=2)
    late = failed(inbox, created=1)
    assert late.status == "skipped"
    assert actions(inbox) == ["resolve"]


def test_the_routing_key_is_not_recorded(inbox: Inbox) -> None:
    inbox.destinations["pagerduty"].answers(400, {"errors": ["testing-pagerduty is wrong"]})
    run = failed(inbox)
    assert run.status == "dead_letter"
    assert "testing-pagerduty" not in repr(list(inbox.table))
    assert "[secret] is wrong" in run.error


def test_without_a_routing_key_no_incident_is_opened_and_the_log_says_so() -> None:
    inbox = Inbox("functions", secrets={"pagerduty": None})
    assert failed(inbox).error == "secret 'pagerduty' is not set: webhookctl secrets set pagerduty"
