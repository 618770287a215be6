"""Handlers and policies that ask a person more than once: each question, and each only once."""

from typing import Any

import pytest

from webhook_inbox import Context, Deny, Event, Hold, Router, all_of
from webhook_inbox.testing import HandlerRun, Inbox


def hold(event: Event, _: Context) -> Hold:
    return Hold("the first question")


def hold_again(event: Event, _: Context) -> Hold:
    return Hold("the second question")


def deny(event: Event, _: Context) -> Deny:
    return Deny("never")


async def allow(event: Event, _: Context) -> None:
    """Asks another approver, and has no objection itself."""


async def hold_later(event: Event, _: Context) -> Hold:
    return Hold("the first question")


def run_under(*policies: Any) -> tuple[HandlerRun, list[str]]:
    """Returns the first attempt of a handler with these policies, and what it has done."""
    shop, done = Router("shop"), list[str]()

    @shop.on("*", policy=all_of(*policies))
    def act(event: Event, ctx: Context) -> None:
        done.append(event.id)

    return Inbox(shop).run("shop.act", {"n": 1}, event_type="x"), done


@pytest.mark.parametrize("first", [hold, hold_later])
def test_an_approval_does_not_silence_the_policies_behind_it(first: Any) -> None:
    run, done = run_under(first, deny)
    assert (run.status, run.error) == ("held", "the first question")
    run.approve()
    assert (run.status, run.error) == ("skipped", "denied: never")
    assert done == []


def test_each_of_several_policies_may_ask() -> None:
    run, done = run_under(allow, hold, hold_again)
    for question in ("the first question", "the second question"):
        assert (run.status, run.error) == ("held", question)
        run.approve()
    assert run.status == "done"
    assert len(done) == 1


def test_a_policy_that_is_awaited_is_not_the_last_one() -> None:
    run, done = run_under(allow, allow, deny)
    assert (run.status, done) == ("skipped", [])


def test_a_handler_may_ask_twice() -> None:
    shop, done = Router("shop"), list[str]()

    @shop.on("*")
    def act(event: Event, ctx: Context) -> None:
        ctx.hold("one")
        ctx.hold("two", shows="more")
        done.append(event.id)

    run = Inbox(shop).run("shop.act", {"n": 1}, event_type="x")
    for question in ("one", "two"):
        assert (run.status, run.error) == ("held", question)
        run.approve()
    assert run.status == "done"
    assert len(done) == 1
