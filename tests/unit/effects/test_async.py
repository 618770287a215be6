"""The same for coroutine functions."""

import asyncio

import pytest

from tests.unit.effects.bench import Bench, Killed
from webhook_inbox.errors import Permanent


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


def test_an_async_effect_that_is_refused_has_failed() -> None:
    bench = Bench()

    async def post(key: str) -> None:
        raise Permanent("422")

    with pytest.raises(Permanent):
        asyncio.run(bench.attempt().aeffect("mail", post))
    assert bench.row("mail")["status"] == "failed"
