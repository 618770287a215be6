"""The example that fulfils what was paid for."""

import json
from pathlib import Path
from typing import Any

import pytest

from webhook_inbox.testing import Inbox

SAMPLE = "events/ingest/stripe/invoice.payment_succeeded__subscription.json"


def paid(**changes: Any) -> dict[str, Any]:
    event: dict[str, Any] = json.loads((Path(__file__).parents[2] / SAMPLE).read_text())
    return {**event, **changes}


def test_what_was_paid_for_is_ordered(inbox: Inbox) -> None:
    run = inbox.run("stripe.fulfil", SAMPLE)

    assert run.status == "done"
    [order] = inbox.destinations["sink"].done
    assert order.path == "/orders"
    assert order.json == {"invoice": "in_1RQ4zL2eZvKYlo2C", "amount": 2000, "currency": "usd"}
    assert (
        order.key == run.effects["create-order"].key == "create-order:invoice:in_1RQ4zL2eZvKYlo2C"
    )


def test_two_events_of_one_payment_are_one_order(inbox: Inbox) -> None:
    first = inbox.run("stripe.fulfil", SAMPLE)
    second = inbox.run("stripe.fulfil", paid(id="evt_2", type="invoice.paid"))

    assert (first.status, second.status) == ("done", "done")
    assert first.effects["create-order"] == second.effects["create-order"]
    assert len(inbox.destinations["sink"].requests) == 1


def test_the_second_event_waits_for_the_first_ones_worker(inbox: Inbox) -> None:
    first = inbox.run("stripe.fulfil", SAMPLE, crash_before_commit="create-order")
    second = inbox.run("stripe.fulfil", paid(id="evt_2", type="invoice.paid"))
    assert (first.status, second.status) == ("processing", "deferred")

    inbox.settle()

    assert (first.status, second.status) == ("done", "done")
    assert len(inbox.destinations["sink"].done) == 1


@pytest.mark.parametrize("crash", ["crash_before", "crash_before_commit", "crash_after"])
def test_wherever_the_worker_dies_one_order_is_made(inbox: Inbox, crash: str) -> None:
    run = inbox.run("stripe.fulfil", SAMPLE, **{crash: "create-order"}).settle()  # type: ignore[arg-type]
    assert run.status == "done"
    assert len(inbox.destinations["sink"].done) == 1


def test_a_shop_that_is_down_is_asked_again(inbox: Inbox) -> None:
    inbox.destinations["sink"].refuses().stalls().answers(503)
    run = inbox.run("stripe.fulfil", SAMPLE).settle()
    assert (run.status, run.attempts) == ("done", 4)
    assert len(inbox.destinations["sink"].done) == 1


def test_a_body_that_is_no_invoice_is_dead_at_once(inbox: Inbox) -> None:
    run = inbox.run("stripe.fulfil", paid(data={"object": {"id": 7}}))
    assert run.status == "dead_letter"
    assert run.error.startswith("permanent: the body is not a valid InvoiceEvent")
    assert inbox.destinations["sink"].requests == []


def test_another_amount_for_the_same_payment_is_for_a_person(inbox: Inbox) -> None:
    inbox.run("stripe.fulfil", SAMPLE)
    event = paid(id="evt_2", type="invoice.paid")
    event["data"]["object"]["amount_paid"] = 1
    run = inbox.run("stripe.fulfil", event)
    assert run.status == "held"
    assert run.error.startswith("effect 'create-order' was committed with other arguments; ")


def test_a_new_customer_is_greeted_once(inbox: Inbox) -> None:
    run = inbox.run("stripe.welcome", "events/ingest/stripe/checkout.session.completed__paid.json")
    assert (run.status, run.redeliver()) == ("done", "duplicate")
    [greeting] = inbox.destinations["sink"].done
    assert greeting.path == "/welcomes"
    assert greeting.json.keys() == {"session", "customer"}
