"""The same for coroutine functions."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.unit.handlers.effects.bench import Bench, Killed, die
from webhook_inbox.domain.errors import Permanent


def test_an_async_effect_happens_once() -> None:
    bench = Bench()

    async def post(key: str) -> object:
        await asyncio.sleep(0)
        return bench.sink(key)

    first = asyncio.run(bench.attempt().aeffect("mail", post))
    again = asyncio.run(bench.attempt().aeffect("mail", post))
    assert first == again == {"id": 1}


def test_an_async_probe_is_asked_where_it_is_in_doubt() -> None:
    bench = Bench()

    async def dying(key: str) -> None:
        raise Killed

    async def probe(key: str) -> str:
        return "found"

    with pytest.raises(Killed):
        asyncio.run(bench.attempt().aeffect("mail", dying))
    assert asyncio.run(bench.attempt().aeffect("mail", dying, probe=probe)) == "found"


def test_effects_side_by_side_are_not_inside_of_each_other() -> None:
    bench = Bench()

    async def post(key: str) -> object:
        await asyncio.sleep(0)
        return bench.sink(key)

    async def handler() -> list[object]:
        effects = bench.attempt()
        return await asyncio.gather(effects.aeffect("a", post), effects.aeffect("b", post))

    assert asyncio.run(handler()) == [{"id": 1}, {"id": 2}]


def test_tasks_and_threads_that_an_effect_starts_are_inside_of_it() -> None:
    effects = Bench().attempt()

    def key() -> str:
        return effects.running.key if effects.running else ""

    async def task() -> str:
        return key()

    async def post(own: str) -> bool:
        await asyncio.sleep(0)
        keys = [key(), await asyncio.create_task(task()), await asyncio.to_thread(key)]
        with ThreadPoolExecutor() as threads:
            return keys == [own] * 3 and threads.submit(key).result() == ""

    async def handler() -> list[object]:
        both = await asyncio.gather(effects.aeffect("a", post), effects.aeffect("b", post))
        return [*both, key()]

    assert asyncio.run(handler()) == [True, True, ""]


def test_an_async_effect_that_is_refused_has_failed() -> None:
    bench = Bench()

    async def post(key: str) -> None:
        raise Permanent("422")

    with pytest.raises(Permanent):
        asyncio.run(bench.attempt().aeffect("mail", post))
    assert bench.row("mail")["status"] == "failed"


def test_a_coroutine_function_is_refused_where_it_would_not_be_awaited() -> None:
    bench = Bench()

    async def post(key: str) -> object:
        return bench.sink(key)

    both: list[dict[str, Any]] = [{"fn": post}, {"fn": bench.sink, "probe": post}]
    for asked in both:
        with pytest.raises(Permanent, match="'mail': it is given a coroutine function; use aeff"):
            bench.attempt().effect("mail", **asked)

    assert bench.sink.keys == []
    assert bench.attempt().effect("mail", bench.sink) == {"id": 1}


def test_a_plain_function_is_done_when_it_returns() -> None:
    bench = Bench()

    assert asyncio.run(bench.attempt().aeffect("mail", bench.sink)) == {"id": 1}
    assert bench.row("mail")["status"] == "committed"


def test_a_plain_probe_is_asked_as_well() -> None:
    bench = Bench()
    died: Any = die
    with pytest.raises(Killed):
        asyncio.run(bench.attempt().aeffect("mail", died))

    plain: Any = lambda _: "found"  # noqa: E731 - what its type forbids
    assert asyncio.run(bench.attempt().aeffect("mail", died, probe=plain)) == "found"


def test_a_coroutine_that_a_plain_function_returns_was_not_done() -> None:
    bench = Bench()

    async def post(key: str) -> object:
        return bench.sink(key)

    with pytest.raises(Permanent, match="it returned a coroutine"):
        bench.attempt().effect("mail", lambda key: post(str(key)))
    assert bench.row("mail")["status"] == "failed"
    assert bench.sink.keys == []


def test_a_coroutine_that_is_returned_after_a_call_leaves_a_doubt() -> None:
    bench = Bench()
    effects = bench.attempt()

    def posts(key: str) -> object:
        running = effects.running
        assert running is not None
        running.begin_call("crm POST /charge")
        bench.sink(key)
        running.end_call()
        return asyncio.sleep(0)

    with pytest.raises(Permanent, match="it returned a coroutine"):
        effects.effect("mail", posts)
    assert bench.row("mail")["status"] == "started"


def test_a_coroutine_that_a_probe_returns_has_found_nothing() -> None:
    bench = Bench()

    async def find(key: str) -> str:
        return "found"

    with pytest.raises(Killed):
        bench.attempt().effect("mail", die)
    with pytest.raises(Permanent, match="it returned a coroutine"):
        bench.attempt().effect("mail", bench.sink, probe=lambda key: find(str(key)))
    assert bench.row("mail")["status"] == "started"


def test_the_stop_iteration_of_a_plain_function_reaches_its_handler() -> None:
    bench = Bench()

    with pytest.raises(StopIteration, match="empty"):
        bench.attempt().effect("mail", lambda key: raise_(StopIteration("empty")))
    with pytest.raises(RuntimeError, match="of the handler"):
        bench.attempt().effect("post", lambda key: raise_(RuntimeError("of the handler")))


def raise_(error: Exception) -> None:
    raise error
