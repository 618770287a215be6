"""Ignored types are counted within bounds, and no acknowledgement fails or waits because of it."""

from dataclasses import replace
from datetime import timedelta

import pytest

from tests.unit.support.world import ACME, World, with_source
from webhook_inbox.adapters.memory import Fault
from webhook_inbox.domain.conditions import Condition
from webhook_inbox.domain.errors import NoTimeLeft
from webhook_inbox.domain.ports import Change, Item, Key
from webhook_inbox.ingest.ignored import (
    KEYS,
    PENDING,
    TYPE_LIMIT,
    TYPES,
    IgnoredTypes,
    find_ignored,
)
from webhook_inbox.ingest.receipt import IngestOutcome, Receipt


@pytest.fixture
def world() -> World:
    """An inbox whose source stores one type."""
    return World(with_source(replace(ACME, types=("paid",))))


def arrive(world: World, type_: str = "star", number: int = 0) -> Receipt:
    receipt = world.deliver(f"{type_[:20]}-{number}".encode(errors="replace").decode(), type_=type_)
    assert (receipt.outcome, receipt.status) == (IngestOutcome.IGNORED, 200)
    return receipt


def counts(world: World, *, days: int = 0) -> dict[str | None, int]:
    """Returns the counts by type, of today and of this many days before."""
    since = world.now - timedelta(days=days)
    found = find_ignored(world.table, "acme", since=since, until=world.now, now=world.now)
    return {each.type: each.count for each in found}


def test_each_type_has_a_count_and_the_most_frequent_comes_first(world: World) -> None:
    arrive(world, "fork")
    for number in range(3):
        arrive(world, "star", number)
    assert list(counts(world).items()) == [("star", 3), ("fork", 1)]


def test_a_known_type_costs_one_write(world: World) -> None:
    arrive(world)
    world.plan.operations()
    arrive(world, number=1)
    assert world.plan.operations() == ["UpdateItem"]


def test_days_are_counted_apart_and_summed_over_the_window(world: World) -> None:
    arrive(world)
    world.clock.advance(minutes=24 * 60)
    arrive(world, number=1)
    assert counts(world) == {"star": 1}
    assert counts(world, days=1) == {"star": 2}
    [found] = find_ignored(
        world.table, "acme", since=world.now - timedelta(days=1), until=world.now, now=world.now
    )
    assert world.now - found.last_at < timedelta(seconds=1)


def test_an_expired_count_is_gone(world: World) -> None:
    arrive(world)
    world.clock.advance(minutes=36 * 24 * 60)
    assert counts(world, days=40) == {}


def test_a_sender_cannot_add_more_types_than_the_bound(world: World) -> None:
    for number in range(TYPES + 7):
        arrive(world, f"type-{number}")
    arrive(world, "type-0", 1)
    found = counts(world)
    assert len(found) == TYPES + 1
    assert (found[None], found["type-0"]) == (7, 2)
    assert list(found)[-1] is None
    # The next day has its own types.
    world.clock.advance(minutes=24 * 60)
    arrive(world, "new")
    assert counts(world) == {"new": 1}


def test_environments_that_see_a_type_at_once_give_it_one_place(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each environment is interrupted by the next one, in its second write."""
    update, waiting, writes = world.table.update, [IgnoredTypes(world.table) for _ in range(60)], []

    def interrupted(key: Key, change: Change, *, when: Condition | None = None) -> Item:
        writes.append(key)
        if len(writes) % 2 == 0 and waiting:
            counted(waiting.pop(), world, "star")
        return update(key, change, when=when)

    monkeypatch.setattr(world.table, "update", interrupted)
    while waiting:
        counted(waiting.pop(), world, "star")
    counted(IgnoredTypes(world.table), world, "fork")
    assert counts(world) == {"star": 60, "fork": 1}


def counted(types: IgnoredTypes, world: World, type_: str) -> None:
    types.add("acme", type_, world.now)
    assert types.flush(world.now) == ""


@pytest.mark.parametrize("fault", list(Fault))
@pytest.mark.parametrize("skip", [0, 1])
def test_a_write_that_fails_takes_one_place(world: World, fault: Fault, skip: int) -> None:
    for _ in range(TYPES + 1):
        world.plan.fail("UpdateItem", fault, skip=skip)
        counter = IgnoredTypes(world.table)
        counter.add("acme", "star", world.now)
        counter.flush(world.now)
        world.plan.heal()
    arrive(world, "fork")
    assert counts(world)["fork"] == 1


def test_a_full_day_costs_one_write(world: World) -> None:
    for number in range(TYPES + 1):
        arrive(world, f"type-{number}")
    world.plan.operations()
    arrive(world, "another")
    assert world.plan.operations() == ["UpdateItem"]


def test_a_long_type_is_cut_and_a_surrogate_replaced(world: World) -> None:
    counter = IgnoredTypes(world.table)
    counter.add("acme", "x" * (TYPE_LIMIT + 1), world.now)
    counter.add("acme", "a\ud800", world.now)
    assert counter.flush(world.now) == ""
    assert counts(world) == {"x" * (TYPE_LIMIT - 1) + "…": 1, "a?": 1}


@pytest.mark.parametrize("fault", list(Fault))
@pytest.mark.parametrize("skip", [0, 1])
def test_a_write_that_fails_fails_no_acknowledgement(world: World, fault: Fault, skip: int) -> None:
    world.plan.fail("UpdateItem", fault, skip=skip)
    receipt = arrive(world)
    assert receipt.detail.startswith("the count of ignored types was not written: dynamodb")
    assert receipt.reason == ""


def test_an_outage_costs_one_write_in_thirty_seconds_and_no_count_is_lost(world: World) -> None:
    world.plan.fail("UpdateItem", times=1000)
    world.plan.operations()
    for number in range(10):
        arrive(world, number=number)
    assert world.plan.operations().count("UpdateItem") == 1
    world.plan.heal()
    world.clock.advance(seconds=31)
    arrive(world, number=10)
    assert counts(world) == {"star": 11}


def test_an_outage_holds_few_types_in_memory(world: World) -> None:
    world.plan.fail("UpdateItem", times=1000)
    for number in range(PENDING + 5):
        arrive(world, f"type-{number}")
    world.plan.heal()
    world.clock.advance(seconds=31)
    for number in range(PENDING):
        world.plan.operations()
        arrive(world, "type-0", number + 1)
        assert world.plan.operations().count("UpdateItem") <= 2 * KEYS
    assert sum(counts(world).values()) == PENDING + 5 + PENDING


def test_an_invocation_without_time_begins_no_pause(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def late(*_: object, **__: object) -> None:
        raise NoTimeLeft("dynamodb", "UpdateItem")

    with monkeypatch.context() as patch:
        patch.setattr(world.table, "update", late)
        assert arrive(world).detail == ""
    arrive(world, number=1)
    assert counts(world) == {"star": 2}


def test_a_fault_of_the_counting_itself_fails_no_acknowledgement(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError("a bug")

    monkeypatch.setattr(world.table, "update", broken)
    assert "a bug" in arrive(world).detail
