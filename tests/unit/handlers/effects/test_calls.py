"""Calls within an effect share its key: there is one, and once it succeeded something was done."""

from contextlib import suppress

import pytest

from tests.unit.handlers.effects.bench import Bench, elsewhere
from webhook_inbox import Context, Event, Held, Permanent, Router, Transient
from webhook_inbox.testing import Fake, Inbox, KitError

shop = Router("shop")


@shop.on("twice")
def twice(event: Event, ctx: Context) -> None:
    def both(key: str) -> None:
        ctx.http("crm").post("/orders", json={"n": 1})
        ctx.http("crm").post("/notes", json={"n": 2})

    ctx.effect("both", both)


@shop.on("again")
def again(event: Event, ctx: Context) -> None:
    def same(key: str) -> None:
        for _ in range(2):
            try:
                ctx.http("crm").post("/orders", json={"n": 1})
            except Transient:
                continue
            return

    ctx.effect("order", same)


@shop.on("looks")
def looks(event: Event, ctx: Context) -> None:
    def made(key: str) -> object:
        ctx.http("crm").get("/orders")
        ctx.http("crm").post("/tokens", json={}, effect=None)
        return ctx.http("crm").post("/orders", json={"n": 1}).json()

    ctx.effect("order", made)


@shop.on("fails-after")
def fails_after(event: Event, ctx: Context) -> None:
    def made(key: str) -> None:
        ctx.http("crm").post("/orders", json={"n": 1})
        raise Permanent("the answer makes no sense")

    ctx.effect("order", made)


@pytest.fixture
def crm() -> Fake:
    return Fake()


@pytest.fixture
def inbox(crm: Fake) -> Inbox:
    return Inbox(shop, destinations={"crm": crm})


def test_a_second_call_under_the_key_is_refused_before_it_is_made(inbox: Inbox, crm: Fake) -> None:
    run = inbox.run("shop.twice", {"n": 1}, event_type="twice")
    assert run.status == "dead_letter"
    assert "'both' makes a second call under its key: give each call an effect" in run.error
    assert [request.path for request in crm.done] == ["/orders"]
    # The first one happened, so the run must not report that nothing was done.
    assert run.effects["both"].in_doubt


def test_the_same_call_may_be_repeated(inbox: Inbox, crm: Fake) -> None:
    crm.answers(500)
    run = inbox.run("shop.again", {"n": 1}, event_type="again")
    assert run.status == "done"
    assert len(crm.requests) == 2


def test_what_reads_or_is_sent_without_the_key_is_no_second_call(inbox: Inbox, crm: Fake) -> None:
    run = inbox.run("shop.looks", {"n": 1}, event_type="looks")
    assert run.status == "done"
    assert len(crm.requests) == 3


def test_a_failure_after_a_call_that_succeeded_leaves_a_doubt(inbox: Inbox) -> None:
    run = inbox.run("shop.fails_after", {"n": 1}, event_type="fails-after")
    assert run.status == "dead_letter"
    assert run.effects["order"].in_doubt


def test_outside_of_an_effect_none_is_running() -> None:
    effects = Bench().attempt()
    assert effects.running is None
    effects.effect("mail", lambda key: None)
    assert effects.running is None


# -- holds that a handler catches


@shop.on("deaf")
def deaf(event: Event, ctx: Context) -> None:
    with suppress(Exception):
        ctx.hold("a lot")
    with suppress(Exception):
        ctx.http("crm").post("/orders", json={"n": 1})


def test_who_catches_a_hold_acts_no_sooner(inbox: Inbox, crm: Fake) -> None:
    run = inbox.run("shop.deaf", {"n": 1}, event_type="deaf")
    assert (run.status, run.error) == ("held", "a lot")
    assert crm.requests == []
    run.approve()
    inbox.settle()
    assert run.status == "done"
    assert len(crm.done) == 1


# -- time, and results that come too late


def test_what_is_committed_is_returned_however_little_time_is_left() -> None:
    bench = Bench()
    bench.attempt().effect("mail", bench.sink)
    assert bench.attempt(seconds=0.5).effect("mail", bench.sink) == {"id": 1}
    with pytest.raises(Transient, match=r"0\.5 s are left"):
        bench.attempt(seconds=0.5).effect("note", bench.sink)
    assert len(bench.sink.keys) == 1


def test_a_result_that_cannot_be_kept_gives_way_to_one_that_was() -> None:
    bench = Bench()
    old = bench.attempt()

    def overtaken(key: str) -> object:
        elsewhere(bench.attempt().effect, "export", lambda key: "small")
        return object()

    assert old.effect("export", overtaken) == "small"
    assert "unrecorded" not in bench.row("export")
    with pytest.raises(Held):
        bench.attempt().effect("other", lambda key: object())


def test_the_kit_still_says_where_a_worker_did_not_die(inbox: Inbox) -> None:
    with pytest.raises(KitError, match="did not reach the effect 'note'"):
        inbox.run("shop.again", {"n": 1}, event_type="again", crash_after="note")
