"""Rows of the last table of docs/handlers.md: failures while a handler runs."""

from collections.abc import Callable
from datetime import timedelta
from email.utils import format_datetime
from threading import Event as Signal
from typing import Any

import pytest

from tests.docs.trouble import a_run, an_inbox, of, posted, refused
from webhook_inbox import Context, Deferred, Event
from webhook_inbox.adapters.system import ThreadExecutor
from webhook_inbox.domain.errors import HandlerTimedOut, Unavailable
from webhook_inbox.domain.ports import Key
from webhook_inbox.ledger.lease import CLOCK_SKEW
from webhook_inbox.testing import Fake, HandlerRun, Inbox

# -- effects


@of("an effect's name is used twice in one run")
def _twice() -> str:
    def doing(_: Event, ctx: Context) -> None:
        ctx.effect("a", lambda: 1)
        ctx.effect("a", lambda: posted(ctx))

    return refused(doing)


@of("an effect inside another effect")
def _nested() -> str:
    def doing(_: Event, ctx: Context) -> None:
        ctx.effect("outer", lambda: ctx.effect("inner", lambda: posted(ctx)))

    run = a_run(doing)
    assert (run.effects["outer"].status, list(run.effects)) == ("failed", ["outer"])
    return refused(doing)


@of("a result that is not JSON, or over 300 KB")
def _unrecorded() -> str:
    for result in (object(), "x" * 300 * 1024):
        crm = Fake()

        def doing(_: Event, ctx: Context, result: Any = result) -> None:
            ctx.effect("a", lambda: [posted(ctx).status_code, result], in_doubt="retry")

        run = a_run(doing, crm=crm)
        assert (run.status, run.effects["a"].committed) == ("held", True)
        assert run.happened({"id": 7}).effects["a"].result == {"id": 7}
        assert (run.status, len(crm.done)) == ("done", 1)
    return run.error


@of("arguments or a key that cannot be stored")
def _unkept() -> str:
    refused(lambda _, ctx: ctx.effect("a", lambda: posted(ctx), args={1, 2}))
    return refused(lambda _, ctx: ctx.effect("a", lambda: posted(ctx), key="k" * 1025))


@of("other arguments in a later attempt")
def _other_arguments() -> str:
    def doing(_: Event, ctx: Context) -> None:
        ctx.effect("a", lambda _: posted(ctx).status_code, args=ctx.attempt)

    run = a_run(doing, crm=Fake().stalls()).settle()
    assert (run.status, run.effects["a"].starts) == ("held", 1)
    return run.error


@of("a coroutine function is given to `ctx.effect` or `ctx.wait_for`")
def _coroutine() -> str:
    async def post(*_: Any) -> None:
        raise AssertionError("it is not awaited")

    error = refused(lambda _, ctx: ctx.effect("a", post))
    assert error == refused(lambda _, ctx: ctx.wait_for("a", post))
    return error


@of("two calls that change something within one effect")
def _two_calls() -> str:
    def doing(_: Event, ctx: Context) -> None:
        crm = ctx.http("crm")
        ctx.effect("a", lambda _: [crm.post(path, json=path).status_code for path in ("/a", "/b")])

    crm = Fake()
    run = a_run(doing, crm=crm)
    assert (run.status, len({request.key for request in crm.requests})) == ("dead_letter", 1)
    assert [request.path for request in crm.done] == ["/a"]
    return run.error


@of("too little time for an effect")
def _late() -> str:
    return refused(lambda _, ctx: ctx.effect("a", lambda: posted(ctx), needs=51), "failed")


# -- storage and clocks


def down(inbox: Inbox, key: Callable[[Key], bool]) -> None:
    """Makes the ledger fail for these rows."""
    get, update = inbox.table.get, inbox.table.update

    def failing(function: Any) -> Any:
        def call(which: Key, *args: Any, **options: Any) -> Any:
            if key(which):
                raise Unavailable("DynamoDB", "any", "throttled")
            return function(which, *args, **options)

        return call

    inbox.table.get = failing(get)  # type: ignore[method-assign]
    inbox.table.update = failing(update)  # type: ignore[method-assign]


@of("the rows of the breaker and rate limit cannot be read")
def _fails_open() -> str:
    crm = Fake(rate="1/s")
    inbox = an_inbox(lambda _, ctx: posted(ctx), crm=crm, destinations=["crm"])
    down(inbox, lambda key: key.pk.startswith("destination#"))
    runs = [inbox.run("x.go", {}) for _ in range(5)]
    assert ([run.status for run in runs], len(crm.done)) == (["done"] * 5, 5)
    return ""


@of("the ledger cannot be reached at an effect")
def _no_ledger() -> str:
    crm = Fake()
    inbox = an_inbox(lambda _, ctx: ctx.effect("a", lambda: posted(ctx)), crm=crm)
    down(inbox, lambda key: key.sk.startswith("effect#"))
    run = inbox.run("x.go", {})
    assert (run.status, crm.done) == ("failed", [])
    return run.error


@of("clocks of workers differ")
def _skew() -> str:
    assert timedelta(seconds=5) == CLOCK_SKEW  # tests/unit/ledger/test_lease.py has what it does
    return ""


# -- time


def asked(after: str) -> tuple[HandlerRun, timedelta]:
    run = a_run(lambda _, ctx: posted(ctx), crm=Fake().answers(429, headers={"Retry-After": after}))
    assert run.due is not None
    return run, run.due - run.row.attempts[-1].ended_at


@of("a `Retry-After` in the past")
def _past() -> str:
    run, wait = asked("Sat, 01 Jan 2022 00:00:00 GMT")
    assert wait < timedelta(seconds=1)
    return run.error


@of("a `Retry-After` of a year")
def _a_year() -> str:
    run, wait = asked(str(365 * 86_400))
    assert wait == timedelta(days=1)
    later = run.row.attempts[-1].ended_at + timedelta(days=365)
    assert asked(format_datetime(later, usegmt=True))[1] == timedelta(days=1)
    return run.error


@of("a run defers itself repeatedly")
def _for_ever() -> str:
    def doing(_: Event, ctx: Context) -> None:
        raise Deferred(ctx.deadline + timedelta(hours=1))

    run = a_run(doing, max_age=86_400).settle()
    assert (run.status, run.attempts) == ("dead_letter", 1)
    assert run.error.startswith("expired: ")
    return run.error


@of("a `Deferred` in the past")
def _deferred_in_the_past() -> str:
    def doing(event: Event, _: Context) -> None:
        raise Deferred(event.received_at - timedelta(days=1))

    inbox = an_inbox(doing)
    run = inbox.run("x.go", {})
    assert run.due is not None
    assert timedelta(milliseconds=990) < run.due - inbox.now <= timedelta(seconds=1)
    return run.error


@of("a handler ignores its timeout")
def _stuck() -> str:
    executor, done = ThreadExecutor(), Signal()

    def stuck() -> None:
        done.wait()

    with pytest.raises(HandlerTimedOut) as raised:
        executor.run(stuck, seconds=0.01)
    # The function then ends its process: tests/functions/test_processor.py.
    assert executor.alive
    done.set()
    return str(raised.value)
