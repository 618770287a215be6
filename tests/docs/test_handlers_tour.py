"""The tour of docs/handlers.md: its code is one module, and does what the text says."""

from pathlib import Path
from types import ModuleType

import pytest

from tests.docs.handlers_page import built, sections
from webhook_inbox import Router
from webhook_inbox.configuration import inbox_toml
from webhook_inbox.testing import Fake, Inbox

CHAPTER = "Tour"
RUN = {"shop.fulfil", "shop.refund", "shop.sync", "shop.book", "shop.pay", "shop.to-billing"}


@pytest.fixture(scope="module")
def shop() -> ModuleType:
    return built(sections()[CHAPTER])


@pytest.fixture
def inbox(shop: ModuleType) -> Inbox:
    return Inbox(shop.shop, destinations={"crm": Fake(), "billing": Fake()})


def test_the_tour_fits_two_pages() -> None:
    assert sections()[CHAPTER].text.count("\n") < 190


def test_every_handler_of_the_tour_is_run_below(shop: ModuleType) -> None:
    router: Router = shop.shop
    assert {spec.name for spec in router.handlers} == RUN


def test_its_own_test_passes(shop: ModuleType) -> None:
    shop.test_a_paid_order_is_labelled_once()


def test_its_destination_loads(tmp_path: Path) -> None:
    path = tmp_path / "inbox.toml"
    path.write_text(sections()[CHAPTER].inbox_toml, encoding="utf-8")
    crm = inbox_toml.load(path, stage="dev").destinations["crm"]
    assert crm.rate == 10
    assert crm.breaker is not None
    assert crm.breaker.failures == 5


def test_a_key_is_spelled_as_it_says(inbox: Inbox) -> None:
    run = inbox.run("shop.fulfil", {"id": "o-1"}, event_type="order.paid", event_id="evt_1")
    assert run.effects["label"].key == "label:shop.fulfil:shop:evt_1"
    assert run.status == "done"


@pytest.mark.parametrize(("amount", "waits"), [(1000, False), (1001, True)])
def test_a_large_refund_waits_for_a_person(inbox: Inbox, amount: int, waits: bool) -> None:
    order = {"id": "o-1", "amount": amount}
    run = inbox.run("shop.refund", order, event_type="order.refunded")
    assert (run.status == "held") is waits
    if waits:
        run.approve()
        inbox.settle()
    assert run.status == "done"
    # Another event that means the same refund.
    inbox.run("shop.refund", order, event_type="order.refunded")
    assert len(inbox.destinations["crm"].done) == 1


def test_an_older_state_is_skipped(inbox: Inbox) -> None:
    def customer(updated_at: str) -> dict[str, object]:
        return {"customer": {"id": "c-1", "updated_at": updated_at}}

    new = inbox.run("shop.sync", customer("2026-02-01T00:00:00Z"), event_type="customer.updated")
    old = inbox.run("shop.sync", customer("2026-01-01T00:00:00Z"), event_type="customer.updated")
    assert (new.status, old.status) == ("done", "skipped")


def test_a_number_that_comes_early_waits_for_its_predecessor(inbox: Inbox) -> None:
    second = inbox.run("shop.book", {"account": "a", "seq": 2}, event_type="account.entry")
    assert second.status == "deferred"
    first = inbox.run("shop.book", {"account": "a", "seq": 1}, event_type="account.entry")
    inbox.settle()
    assert (first.status, second.status) == ("done", "done")
    numbers = [request.json["seq"] for request in inbox.destinations["crm"].done]
    assert numbers == [1, 2]


def test_a_payout_waits_for_a_person_and_then_for_its_transfer(inbox: Inbox) -> None:
    payout = {"v": "1", "amount": 20_000}
    run = inbox.run("shop.pay", payout, event_type="payout.requested")
    assert (run.status, run.error) == ("held", "20000 is above the limit")
    run.approve()
    assert run.status == "deferred"
    run.complete("transfer", {"id": "t-1"})
    inbox.settle()
    assert run.status == "done"
    sent = [request.json for request in inbox.destinations["crm"].done]
    assert sent[0]["report"].startswith("/completions/")
    assert sent[1] == {"transfer": "t-1"}


def test_an_unknown_version_is_named(inbox: Inbox) -> None:
    run = inbox.run("shop.pay", {"v": "3", "amount": 1}, event_type="payout.requested")
    assert run.status == "dead_letter"
    assert "'3'" in run.error
    assert "'1', '2'" in run.error


def test_events_are_forwarded(inbox: Inbox) -> None:
    run = inbox.run("shop.to-billing", {"id": "o-1"}, event_type="order.paid")
    assert run.status == "done"
    (request,) = inbox.destinations["billing"].done
    assert request.json == {"id": "o-1"}
