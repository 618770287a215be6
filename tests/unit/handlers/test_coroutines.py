"""Async handlers are run to their end; plain ones are left alone."""

import asyncio
from typing import Any

import pytest

from webhook_inbox import Deny, Transient, Versions
from webhook_inbox.handlers.coroutines import plain
from webhook_inbox.handlers.router import Registered


async def pause(event: Any, ctx: Any) -> str:
    await asyncio.sleep(0)
    return f"{event} {ctx}"


async def fail(event: Any, ctx: Any) -> None:
    raise Transient(str(event))


@pytest.mark.parametrize("function", [pause, lambda event, ctx: f"{event} {ctx}"])
def test_a_handler_returns_when_all_is_done(function: Any) -> None:
    assert plain(Registered(function)).function("event", "ctx") == "event ctx"


def test_what_it_raises_is_raised() -> None:
    with pytest.raises(Transient, match="why"):
        plain(Registered(fail)).function("why", None)


def test_a_policy_and_a_backfill_may_be_async_too() -> None:
    async def deny(event: Any, ctx: Any) -> Deny:
        return Deny("no")

    async def backfill(ordering_key: str, first: int, last: int) -> int:
        return last

    made = plain(Registered(pause, policy=deny, backfill=backfill))

    assert made.policy is not None
    assert made.backfill is not None
    assert made.policy(None, None) == Deny("no")
    assert made.backfill("a", 1, 3) == 3


def test_what_is_not_declared_stays_so() -> None:
    versions = Versions("v", {"1": None})
    made = plain(Registered(pause, versions=versions))
    assert (made.policy, made.backfill, made.versions) == (None, None, versions)
