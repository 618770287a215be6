"""The pass over the due index: a budget for each handler, and turns."""

from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import timedelta
from threading import current_thread
from typing import Any, TypeVar

import pytest

from tests.unit.support.world import World, handler
from webhook_inbox.adapters.system import ThreadParallel
from webhook_inbox.domain.errors import Deferred
from webhook_inbox.domain.manifest import SPLITTER, DestinationSpec, HandlerSpec, Manifest
from webhook_inbox.domain.model import Status
from webhook_inbox.domain.ports import Key
from webhook_inbox.domain.timestamps import from_ms, to_ms
from webhook_inbox.ledger.queries import PAGE
from webhook_inbox.ledger.schema import WAKE, WATCH
from webhook_inbox.reconciler.due_index import DRAIN, Budgets
from webhook_inbox.reconciler.reconciler import Reconciler
from webhook_inbox.reconciler.report import Action, ReconcilerReport

T = TypeVar("T")
R = TypeVar("R")
FEW = 20


def sending(**settings: Any) -> DestinationSpec:
    return DestinationSpec("crm", "https://crm.example", breaker=None, **settings)


def manifest(*handlers: HandlerSpec, crm: DestinationSpec | None = None) -> Manifest:
    base = World().manifest
    return Manifest(
        stage="test",
        version="1",
        sources=base.sources,
        handlers={spec.name: spec for spec in handlers},
        destinations={"crm": crm} if crm else {},
    )


TWO = manifest(handler("acme.bulk", "bulk"), handler("acme.pay", "paid"))


def park(world: World, number: int, *, type_: str, hours: float = 1, first: int = 0) -> None:
    """Parks runs of the handlers of a type, without a due message."""
    for name in world.manifest.handlers:
        world.fails(name, Deferred(world.now + timedelta(hours=hours)))
    for each in range(first, first + number):
        world.deliver(f"{type_}-{each}", type_=type_, body=f'{{"n": {each}}}'.encode())
        world.work_once()
    world.behaviours.clear()


def woken(world: World, handler_name: str) -> int:
    runs = [row for row in world.table if row.get("handler") == handler_name and "status" in row]
    return sum(row["status"] == Status.PENDING for row in runs)


def few_at_once(world: World) -> ReconcilerReport:
    """Runs a pass in which each handler may send a few runs."""
    return Reconciler(world.manifest, world.ports, drain=FEW).run(
        deadline=world.now + timedelta(minutes=5)
    )


# -- one handler's backlog and another's runs


def test_a_handlers_backlog_delays_no_other_handlers_runs() -> None:
    world = World(TWO)
    park(world, FEW + 30, type_="bulk")
    park(world, 3, type_="paid")
    world.clock.advance(hours=3)
    few_at_once(world)
    assert (woken(world, "acme.pay"), woken(world, "acme.bulk")) == (3, FEW)
    few_at_once(world)
    assert (woken(world, "acme.pay"), woken(world, "acme.bulk")) == (3, 2 * FEW)


def test_lost_messages_of_one_handler_delay_no_other_handlers_runs() -> None:
    world = World(TWO)
    park(world, FEW + 30, type_="bulk")
    park(world, 3, type_="paid")
    world.clock.advance(hours=3)
    world.reconcile()
    for queue in world.queues.values():
        queue._messages.clear()
    world.clock.advance(minutes=28)
    assert few_at_once(world).count(Action.RESENT) == FEW + 3
    assert {world.run(f"paid-{n}", "acme.pay").resends for n in range(3)} == {1}


def test_parked_runs_do_not_use_the_budget_of_lost_ones() -> None:
    world = World(TWO)
    park(world, FEW, type_="bulk")
    world.clock.advance(hours=3)
    world.reconcile()
    for queue in world.queues.values():
        queue._messages.clear()
    world.clock.advance(minutes=28)
    park(world, FEW, type_="bulk", hours=0.5, first=FEW)
    world.clock.advance(hours=1)
    report = few_at_once(world)
    assert (report.count(Action.RESUMED), report.count(Action.RESENT)) == (FEW, FEW)


@pytest.mark.usefixtures("due_index_only")
def test_a_pass_stops_reading_a_handler_whose_budget_is_used_up() -> None:
    world = World(TWO)
    park(world, 3 * PAGE, type_="bulk")
    world.clock.advance(hours=3)
    world.plan.operations()
    few_at_once(world)
    assert world.plan.operations().count("BatchGetItem") == 1


def test_the_oldest_runs_of_a_shard_are_sent_first() -> None:
    world = World(TWO)
    park(world, 4 * FEW, type_="bulk")
    world.clock.advance(hours=3)
    few_at_once(world)
    runs = [row for row in world.table if row.get("handler") == "acme.bulk" and "status" in row]
    sent = [row for row in runs if row["status"] == Status.PENDING]
    (shard,) = {row["due_bucket"].removeprefix(WATCH) for row in sent}
    left = [row["first_at"] for row in runs if row["due_bucket"] == WAKE + shard]
    assert max(row["first_at"] for row in sent) < min(left, default=1 << 62)


# -- budgets


def budgets(*handlers: HandlerSpec, **settings: Any) -> Budgets:
    return Budgets(manifest(*handlers, crm=sending(**settings)), drain=DRAIN)


CALLER = handler("acme.a", "a", destinations=("crm",))
OTHER = handler("acme.b", "b", destinations=("crm",))


@pytest.mark.parametrize(("rate", "runs"), [(100, 6000), (20, 1200), (2, 120), (0.01, 1)])
def test_the_rate_of_a_destination_is_the_budget_of_its_callers(rate: float, runs: int) -> None:
    made = budgets(CALLER, rate=rate)
    assert made.left("acme.a", WAKE) == runs
    assert made.left("acme.a", WATCH) == DRAIN


def test_a_destination_without_a_rate_leaves_the_handlers_own_budget() -> None:
    assert budgets(CALLER).left("acme.a", WAKE) == DRAIN


def test_a_handler_that_is_not_deployed_has_a_budget() -> None:
    assert budgets(CALLER, rate=1).left("acme.gone", WAKE) == DRAIN


def test_the_callers_of_a_destination_share_its_budget() -> None:
    made = budgets(CALLER, OTHER, rate=2)
    assert (made.turn("acme.a", WAKE), made.turn("acme.b", WAKE)) == (60, 60)
    made.spend("acme.a", WAKE, 60)
    assert (made.left("acme.a", WAKE), made.turn("acme.b", WAKE)) == (60, 60)
    made.spend("acme.b", WAKE, 60)
    assert (made.turn("acme.a", WAKE), made.turn("acme.b", WAKE)) == (0, 0)


def test_a_rate_lets_a_pass_send_more_than_the_handlers_own_budget() -> None:
    world = World(manifest(handler("acme.a", "a")))
    park(world, 2 * FEW, type_="a")
    calling = handler("acme.a", "a", destinations=("crm",))
    world.deploy(manifest(calling, crm=sending(rate=0.5)))
    world.clock.advance(hours=3)
    assert few_at_once(world).count(Action.RESUMED) == 30


def test_a_budget_counts_runs_that_are_sent_and_no_others() -> None:
    world = World(TWO)
    park(world, 40, type_="bulk", hours=48)  # due in two days, read daily
    for row in list(world.table):
        if row.get("handler") == "acme.bulk" and "status" in row:
            world.table.put({**row, "due_at": to_ms(world.now)})
    park(world, 5, type_="bulk2")
    world.clock.advance(seconds=1)
    assert world.reconcile().counts == {Action.POSTPONED: 40}


# -- handlers that are gone


def test_a_parked_run_of_a_removed_handler_is_sent_when_it_is_due() -> None:
    world = World(TWO)
    park(world, 1, type_="bulk")
    world.reconcile()
    world.deploy(manifest(handler("acme.pay", "paid")))
    world.clock.advance(hours=2)
    assert world.reconcile().count(Action.RESUMED) == 1


def test_a_handler_of_a_deployment_that_was_rolled_back_at_once_is_found() -> None:
    world = World(manifest(handler("acme.pay", "paid")))
    world.deploy(TWO)
    world.table.delete(Key("due_index", "handler#acme.bulk"))
    world.processor._listed._known.clear()
    park(world, 1, type_="bulk")  # its worker registers it
    world.deploy(manifest(handler("acme.pay", "paid")))
    world.clock.advance(hours=2)
    assert world.reconcile().count(Action.RESUMED) == 1


def test_the_runs_of_the_batch_splitter_are_found() -> None:
    world = World(manifest(handler("acme.pay", "paid"), SPLITTER))
    found: list[str] = []
    query = world.table.query_index

    def noted(index: str, value: str, **parts: Any) -> Any:
        found.append(value)
        return query(index, value, **parts)

    world.table.query_index = noted  # type: ignore[method-assign,assignment]
    world.clock.advance(minutes=1)
    world.reconcile()
    assert {name.split("#")[1] for name in found if "#" in name} >= {"acme.pay", "split"}


# -- the calls


class Noting:
    """Makes the calls in turn and notes how many it was given at once."""

    def __init__(self) -> None:
        self.sizes: list[int] = []

    def map(self, work: Callable[[T], R], subjects: Iterable[T]) -> list[R]:
        found = list(subjects)
        self.sizes.append(len(found))
        return [work(each) for each in found]


def test_the_writes_of_a_page_and_the_sends_are_made_at_the_same_time() -> None:
    world, noting = World(TWO), Noting()
    park(world, 90, type_="bulk")
    world.clock.advance(hours=2)
    world.plan.operations()
    Reconciler(world.manifest, replace(world.ports, parallel=noting)).run(
        deadline=world.now + timedelta(minutes=5)
    )
    assert sum(noting.sizes[1:]) == 90 + 9  # the first pages are read before
    assert world.plan.operations().count("SendMessageBatch") == 9


def test_threads_send_every_run_once() -> None:
    world, names = World(TWO), set()
    park(world, 250, type_="bulk")
    world.clock.advance(hours=2)
    update = world.table.update

    def noted(*parts: Any, **named: Any) -> Any:
        names.add(current_thread().name)
        return update(*parts, **named)

    world.table.update = noted  # type: ignore[method-assign]
    ports = replace(world.ports, parallel=ThreadParallel(8))
    report = Reconciler(world.manifest, ports).run(deadline=world.now + timedelta(minutes=5))
    assert report.count(Action.RESUMED) == 250
    assert len(set(world.queues["default"].bodies)) == 250
    assert any(name.startswith("parallel") for name in names)


def test_a_batch_that_is_not_sent_heals() -> None:
    world = World(TWO)
    park(world, 30, type_="bulk")
    world.clock.advance(hours=2)
    world.plan.fail("SendMessageBatch")
    report = world.reconcile()
    assert (report.count(Action.RESUMED), report.count(Action.FAILED)) == (30, 1)
    assert len(world.messages()) == 20
    world.work()
    world.run_until_quiet()
    assert len(world.handled) >= 30
    assert {world.run(f"bulk-{n}", "acme.bulk").status for n in range(30)} == {Status.DONE}


@pytest.mark.usefixtures("due_index_only")
def test_a_handler_whose_entries_cannot_be_read_stops_no_other() -> None:
    world = World(TWO)
    park(world, 2, type_="bulk")
    park(world, 2, type_="paid")
    world.clock.advance(hours=2, minutes=1)
    get_many = world.table.get_many

    def broken(keys: Any, **named: Any) -> Any:
        if any("acme.bulk" in key.sk for key in keys):
            raise ValueError("unreadable")
        return get_many(keys, **named)

    world.table.get_many = broken  # type: ignore[method-assign]
    report = world.reconcile()
    assert (report.count(Action.RESUMED), report.count(Action.FAILED)) == (2, 1)


@pytest.mark.usefixtures("due_index_only")
def test_it_ends_within_its_time_and_says_so() -> None:
    world = World(TWO)
    park(world, 300, type_="bulk")
    world.clock.advance(hours=2, minutes=1)
    get_many = world.table.get_many

    def slow(keys: Any, **named: Any) -> Any:
        world.clock.advance(seconds=20)
        return get_many(keys, **named)

    world.table.get_many = slow  # type: ignore[method-assign]
    started = world.now
    report = world.reconcile()
    assert report.complete is False
    assert 100 <= report.count(Action.RESUMED) < 300
    assert from_ms(to_ms(world.now)) - started < timedelta(seconds=90)
