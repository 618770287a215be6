"""A worker dies in the middle: whatever was done before is known, and nothing after it happens."""

from typing import Any

import pytest

from tests.unit.testing.shop import shop
from webhook_inbox import Context, Event, Router
from webhook_inbox.testing import Fake, Inbox, KitError


@pytest.fixture
def crm() -> Fake:
    return Fake()


@pytest.fixture
def inbox(crm: Fake) -> Inbox:
    return Inbox(shop, destinations={"crm": crm, "old": Fake(idempotency=False)})


def paths(fake: Fake) -> list[str]:
    return [request.path for request in fake.done]


def test_after_a_crash_nothing_more_is_done(inbox: Inbox, crm: Fake) -> None:
    run = inbox.run("shop.fulfil", {}, crash_after="order")

    assert run.status == "processing"
    assert run.effects["order"].committed
    assert paths(crm) == ["/orders"]


def test_a_recorded_effect_is_not_repeated_after_a_crash(inbox: Inbox, crm: Fake) -> None:
    run = inbox.run("shop.fulfil", {}, crash_after="order").settle()

    assert (run.status, run.attempts) == ("done", 2)
    assert [request.path for request in crm.requests] == ["/orders", "/notes"]
    assert crm.requests[1].json == {"order": "crm-1"}


def test_an_unrecorded_effect_is_repeated_under_its_key(inbox: Inbox, crm: Fake) -> None:
    run = inbox.run("shop.fulfil", {}, crash_before_commit="order")
    assert run.effects["order"].in_doubt

    run.settle()

    assert (run.status, run.effects["order"].starts) == ("done", 2)
    first, second, _ = crm.requests
    assert (first.key, first.done, second.done) == (second.key, True, False)
    assert paths(crm) == ["/orders", "/notes"]


def test_an_unrecorded_effect_happens_twice_where_keys_are_not_honoured() -> None:
    careless = Fake(honours_keys=False)
    inbox = Inbox(shop, destinations={"crm": careless})

    inbox.run("shop.fulfil", {}, crash_before_commit="order").settle()

    assert paths(careless) == ["/orders", "/orders", "/notes"]


def test_a_keyless_effect_in_doubt_waits_for_a_person(inbox: Inbox) -> None:
    run = inbox.run("shop.keyless", {}, crash_before_commit="print").settle()

    assert run.status == "held"
    assert len(inbox.destinations["old"].done) == 1


def test_a_started_effect_that_was_not_made_is_in_doubt_all_the_same(
    inbox: Inbox, crm: Fake
) -> None:
    run = inbox.run("shop.fulfil", {}, crash_before="order")
    assert (run.effects["order"].in_doubt, crm.requests) == (True, [])

    assert run.settle().status == "done"

    assert paths(crm) == ["/orders", "/notes"]


def test_the_message_comes_back_when_its_visibility_is_over(inbox: Inbox) -> None:
    run = inbox.run("shop.fulfil", {}, crash_after="order")
    inbox.advance(minutes=5, seconds=59)
    assert run.status == "processing"
    inbox.advance(seconds=2)
    assert run.status == "done"


def test_a_handler_that_catches_everything_is_not_heard_of_either() -> None:
    router, crm = Router("stubborn"), Fake()

    @router.on("go")
    def cling(event: Event, ctx: Context) -> Any:
        try:
            ctx.effect("first", lambda: 1)
        except BaseException:  # noqa: BLE001 - as a handler may
            ctx.http("crm").post("/farewell", json={})

    inbox = Inbox(router, destinations={"crm": crm})

    run = inbox.run("stubborn.cling", {}, crash_after="first")

    assert (run.status, crm.requests) == ("processing", [])


def test_a_crash_at_an_effect_that_is_not_made_is_no_test(inbox: Inbox) -> None:
    inbox.run("shop.fulfil", {})
    with pytest.raises(KitError, match="did not reach the effect 'oder'; it reached: order, note"):
        inbox.run("shop.fulfil", {}, crash_after="oder")


def test_a_worker_dies_once(inbox: Inbox) -> None:
    with pytest.raises(KitError, match="a worker dies once: give one place"):
        inbox.run("shop.fulfil", {}, crash_after="order", crash_before="note")
    with (
        pytest.raises(KitError, match="a crash is placed already"),
        inbox.crash(after="order"),
    ):
        inbox.run("shop.fulfil", {}, crash_after="order")


def test_the_next_run_has_a_worker_that_lives(inbox: Inbox, crm: Fake) -> None:
    inbox.run("shop.fulfil", {}, crash_after="order")
    assert inbox.run("shop.fulfil", {}).status == "done"
