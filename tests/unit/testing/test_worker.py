"""A worker that is gone reads nothing, writes nothing and makes no call."""

from collections.abc import Callable
from functools import partial
from typing import Any

import httpx
import pytest

from webhook_inbox.adapters.memory import ManualClock, MemoryTable
from webhook_inbox.domain.conditions import Absent
from webhook_inbox.domain.manifest import DestinationSpec
from webhook_inbox.domain.ports import Change, Key, Table
from webhook_inbox.testing import Died, Fake
from webhook_inbox.testing.worker import CrashPlace, Moment, WorkerLife, WorkersTable

KEY = Key("event#s#e", "effect#h#order")
INDEX = ("by_received", "2026-11-21T10#0")
STARTED = Change(set={"idempotency_key": "k", "name": "order", "status": "started"})
COMMITTED = Change(set={"idempotency_key": "k", "name": "order", "status": "committed"})
CALLS: dict[str, Callable[[Table], Any]] = {
    "get": lambda table: table.get(KEY),
    "get_many": lambda table: table.get_many([KEY]),
    "put": lambda table: table.put({"pk": "a", "sk": "b"}),
    "update": lambda table: table.update(KEY, Change(set={"n": 1})),
    "delete": lambda table: table.delete(KEY),
    "query": lambda table: list(table.query("event#s#e")),
    "query_index": lambda table: table.query_index(*INDEX, low=0, high=9),
}


class Bench:
    """A table as a worker has it."""

    def __init__(self, ends: CrashPlace | None = None) -> None:
        self.table = MemoryTable()
        self.life = WorkerLife(ends=ends)
        self.own = WorkersTable(self.table, self.life)


@pytest.mark.parametrize("name", CALLS)
def test_a_living_worker_has_the_table_itself(name: str) -> None:
    bench, other = Bench(), MemoryTable()
    row = {"pk": KEY.pk, "sk": KEY.sk, "n": 0}
    bench.table.put(row)
    other.put(row)
    assert CALLS[name](bench.own) == CALLS[name](other)
    assert list(bench.table) == list(other)


@pytest.mark.parametrize("name", CALLS)
def test_a_dead_one_can_do_nothing_with_it(name: str) -> None:
    bench = Bench()
    bench.life.alive = False
    with pytest.raises(Died):
        CALLS[name](bench.own)
    assert list(bench.table) == []


def test_a_dead_worker_makes_no_call() -> None:
    fake, life = Fake(), WorkerLife(alive=False)
    fake.bind(DestinationSpec("crm", "https://crm.example"), ManualClock(), life)
    with pytest.raises(Died):
        fake.handle_request(httpx.Request("POST", "https://crm.example/"))
    assert fake.requests == []


@pytest.mark.parametrize(
    ("moment", "statuses"),
    [
        (Moment.STARTED, ["started"]),
        (Moment.HAPPENED, ["started"]),
        (Moment.COMMITTED, ["committed"]),
    ],
)
def test_it_dies_at_what_it_writes_of_an_effect(moment: Moment, statuses: list[str]) -> None:
    bench = Bench(CrashPlace(moment, "order"))

    with pytest.raises(Died):
        list(map(partial(bench.own.update, KEY), (STARTED, COMMITTED)))

    assert [row["status"] for row in bench.table] == statuses
    assert not bench.life.alive


@pytest.mark.parametrize(
    "ends", [None, CrashPlace(Moment.STARTED, "note"), CrashPlace(Moment.COMMITTED, "note")]
)
def test_it_survives_what_it_writes_of_another(ends: CrashPlace | None) -> None:
    bench = Bench(ends)
    for change in (STARTED, COMMITTED):
        bench.own.update(KEY, change)
    assert (bench.life.alive, bench.life.reached, bench.life.starts) == (True, ["order"], {KEY: 1})


def test_a_start_that_was_refused_is_none() -> None:
    bench = Bench()
    bench.own.update(KEY, STARTED)
    with pytest.raises(Exception, match="the condition of the write failed"):
        bench.own.update(KEY, STARTED, when=Absent("pk"))
    assert bench.life.starts == {KEY: 1}


def test_a_row_that_is_no_effect_kills_no_worker() -> None:
    bench = Bench(CrashPlace(Moment.STARTED, "order"))
    bench.own.update(Key("event#s#e", "run#h"), Change(set={"status": "started", "name": "order"}))
    assert bench.life.alive


def test_another_worker_begins_alive_and_with_nothing_done() -> None:
    bench = Bench(CrashPlace(Moment.STARTED, "order"))
    with pytest.raises(Died):
        bench.own.update(KEY, STARTED)
    bench.life.begin()
    assert (bench.life.alive, bench.life.ends, bench.life.reached) == (True, None, [])
    assert bench.life.starts == {KEY: 1}


def test_a_death_is_no_error_that_a_handler_means_to_catch() -> None:
    assert not issubclass(Died, Exception)
