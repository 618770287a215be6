"""Which events of a log the ledger does not have."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from tests.unit.support.world import World
from webhook_inbox.adapters.memory import ManualClock
from webhook_inbox.client.delivery_logs.comparison import CHUNK, Comparison, Logged, compare
from webhook_inbox.domain.ports import Item, Key
from webhook_inbox.ledger.schema import EVENT_LIFE, ID_LIMIT

NOW = ManualClock().now()


def logged(event_id: str, type_: str = "paid", minute: int = 0) -> Logged:
    return Logged(event_id, type_, NOW + timedelta(minutes=minute), 503, event_id)


def compared(world: World, *entries: Logged, wants: Any = lambda _: True) -> Comparison:
    return compare(entries, world.table, source="acme", wants=wants, now=world.now)


def ids(comparison: Comparison) -> list[str]:
    return [entry.event_id for entry in comparison.missing]


def test_what_is_in_the_ledger_is_not_missing() -> None:
    world = World()
    world.deliver("evt-1")

    assert ids(compared(world, logged("evt-1"), logged("evt-2"))) == ["evt-2"]


def test_another_sources_event_of_the_same_id_does_not_count() -> None:
    world = World()
    world.deliver("evt-1")

    found = compare([logged("evt-1")], world.table, source="b", wants=bool, now=world.now)

    assert ids(found) == ["evt-1"]


def test_an_id_that_is_too_long_for_a_key_is_looked_up_as_it_is_stored() -> None:
    world = World()
    long = "e" * (ID_LIMIT + 1)
    world.deliver(long)

    assert ids(compared(world, logged(long))) == []


def test_an_event_that_has_expired_is_missing() -> None:
    world = World()
    world.deliver("evt-1")
    world.clock.advance(seconds=EVENT_LIFE.total_seconds() + 1)

    assert ids(compared(world, logged("evt-1"))) == ["evt-1"]


def test_types_that_the_source_does_not_store_are_counted_and_not_looked_up() -> None:
    found = compared(World(), logged("a", "paid"), logged("b", "seen"), wants="paid".__eq__)

    assert (found.looked_at, found.unwanted, ids(found)) == (2, 1, ["a"])


def test_the_oldest_comes_first_however_long_the_log_is() -> None:
    count = 2 * CHUNK + 1
    entries = [logged(f"evt-{number:05d}", minute=number) for number in range(count)]

    assert ids(compared(World(), *reversed(entries))) == [entry.event_id for entry in entries]


def test_what_came_a_moment_ago_is_not_missing_though_a_read_of_many_lags(monkeypatch: Any) -> None:
    world = World()
    world.deliver("evt-1")

    def nothing_yet(keys: Sequence[Key]) -> list[Item]:
        return []

    monkeypatch.setattr(world.table, "get_many", nothing_yet)

    assert ids(compared(world, logged("evt-1"), logged("evt-2"))) == ["evt-2"]
