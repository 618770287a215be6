"""Events are read twice, by durable cursors; a lane's backlog delays its second look only."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta

import pytest

from tests.unit.reconciler.test_unsent import adopted, unsent
from tests.unit.support.world import World, handler, with_handlers
from webhook_inbox.domain.errors import Unavailable
from webhook_inbox.domain.model import Status
from webhook_inbox.domain.ports import Backlog, Page
from webhook_inbox.domain.timestamps import to_ms
from webhook_inbox.ledger.schema import BY_RECEIVED, RECEIVED_SHARDS
from webhook_inbox.queue.lanes import LARGE_BACKLOG
from webhook_inbox.reconciler import received
from webhook_inbox.reconciler.received import CURSORS
from webhook_inbox.reconciler.report import Action


@contextmanager
def counted(world: World) -> Iterator[Counter[str]]:
    """Counts how often the index returns each event."""
    reads, query = Counter[str](), world.table.query_index

    def noted(index: str, value: str, **parts: object) -> Page:
        page = query(index, value, **parts)  # type: ignore[arg-type]
        if index == BY_RECEIVED:
            reads.update(item["pk"] for item in page.items)
        return page

    world.table.query_index = noted  # type: ignore[method-assign,assignment]
    yield reads
    world.table.query_index = query  # type: ignore[method-assign]


def backlog(
    world: World, visible: int, *, oldest: timedelta | None = None, lane: str = "default"
) -> None:
    world.queues[lane].backlog = lambda: Backlog(visible, oldest)  # type: ignore[method-assign]


def alter_event(world: World, event_id: str, **values: object) -> None:
    row = world.event_row(event_id)
    assert row is not None
    world.table.put({**row, **values})


def write_calls(world: World) -> int:
    """Runs a pass; returns the number of its writes to rows of runs."""
    before = {(row["pk"], row["sk"]): row for row in world.table if row["sk"].startswith("run#")}
    world.reconcile()
    after = {(row["pk"], row["sk"]): row for row in world.table if row["sk"].startswith("run#")}
    return sum(before.get(key) != row for key, row in after.items())


# -- reads


def test_an_event_is_read_twice_in_its_life(world: World) -> None:
    with counted(world) as reads:
        for number in range(40):
            world.deliver(f"evt-{number}")
            world.work()
            world.pass_minutes(1)
        world.pass_minutes(24 * 60)
    assert set(reads.values()) == {2}
    assert len(reads) == 40


def test_the_first_look_is_after_three_minutes(world: World) -> None:
    world.reconcile()
    unsent(world)
    world.clock.advance(minutes=2, seconds=59)
    assert adopted(world) == 0
    world.clock.advance(seconds=1)
    assert adopted(world) == 1


def test_an_event_that_was_stored_after_the_first_look_is_found_by_the_second(world: World) -> None:
    world.table.lag = lambda unseen: unseen
    unsent(world)
    world.clock.advance(minutes=4)
    assert adopted(world) == 0
    world.table.lag = lambda unseen: 0
    world.clock.advance(minutes=5)
    assert adopted(world) == 0
    world.clock.advance(minutes=26)
    assert adopted(world) == 1


@pytest.mark.parametrize("minute", range(0, 60, 7))
def test_both_hours_are_read(minute: int) -> None:
    """An event of 23:58 is read at 00:05 as one of 00:00 is."""
    world = World()
    world.clock.advance(hours=5, minutes=minute)
    for number in range(12):
        unsent(world, f"evt-{number}")
    world.pass_minutes(5)
    assert {world.run(f"evt-{number}").status for number in range(12)} == {Status.DONE}


def test_no_event_is_missed_while_the_reconciler_was_off(world: World) -> None:
    world.reconcile()
    for number in range(20):
        unsent(world, f"evt-{number}")
        world.clock.advance(hours=4, minutes=13)
    assert adopted(world) == 20


def test_events_of_one_millisecond_on_two_pages_are_all_read(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(received, "PAGE", 2)
    now = world.now
    for number in range(60):
        unsent(world, f"evt-{number}")
        alter_event(world, f"evt-{number}", received_at=to_ms(now))
    world.clock.advance(minutes=5)
    found = 0
    for _ in range(60):  # Time is up after every few calls; each pass reads on.
        with limited(world, calls=40):
            found += world.reconcile().count(Action.ADOPTED)
    assert found == 60


@contextmanager
def limited(world: World, *, calls: int) -> Iterator[None]:
    """Lets the time of a pass run out after so many index queries."""
    query, left = world.table.query_index, [calls]

    def slow(*parts: object, **named: object) -> Page:
        left[0] -= 1
        if not left[0]:
            world.clock.advance(minutes=5)
        return query(*parts, **named)  # type: ignore[arg-type]

    world.table.query_index = slow  # type: ignore[method-assign,assignment]
    yield
    world.table.query_index = query  # type: ignore[method-assign]


def test_an_unfinished_pass_says_so_and_the_next_starts_with_the_shard_that_is_behind(
    world: World,
) -> None:
    world.reconcile()
    for number in range(200):
        unsent(world, f"evt-{number}")
    world.clock.advance(minutes=5)
    with limited(world, calls=16 + 3):
        report = world.reconcile()
    assert report.complete is False
    first = world.peek(CURSORS)["first"]
    behind = {shard for shard, at in first.items() if at < to_ms(world.now - timedelta(minutes=12))}
    assert 0 < len(behind) < RECEIVED_SHARDS
    asked: list[str] = []
    query = world.table.query_index

    def noted(index: str, value: str, **parts: object) -> Page:
        if index == BY_RECEIVED:
            asked.append(value.partition("#")[2])
        return query(index, value, **parts)  # type: ignore[arg-type]

    world.table.query_index = noted  # type: ignore[method-assign,assignment]
    assert world.reconcile().complete is True
    assert set(list(dict.fromkeys(asked))[: len(behind)]) == behind
    assert {world.run(f"evt-{number}").status for number in range(200)} == {Status.PENDING}


@pytest.mark.parametrize("operation", ["UpdateItem", "SendMessageBatch", "BatchGetItem", "GetItem"])
def test_a_page_with_a_failed_call_is_read_again(world: World, operation: str) -> None:
    world.reconcile()
    for number in range(8):
        unsent(world, f"evt-{number}")
    world.clock.advance(minutes=4)
    world.plan.fail(operation, skip=1)
    with suppress(Unavailable):
        world.reconcile()
    world.plan.heal()
    world.clock.advance(minutes=1)
    world.reconcile()
    assert {world.run(f"evt-{number}").status for number in range(8)} == {Status.PENDING}


def test_an_unreadable_event_does_not_stop_its_shard(world: World) -> None:
    world.reconcile()
    unsent(world, "evt-1")
    alter_event(world, "evt-1", ordering_keys=7)
    world.clock.advance(minutes=4)
    report = world.reconcile()
    assert report.count(Action.FAILED) == 1
    world.clock.advance(minutes=1)
    assert world.reconcile().count(Action.FAILED) == 0


def test_two_passes_at_once_adopt_a_run_once(world: World) -> None:
    world.reconcile()
    unsent(world)
    world.clock.advance(minutes=5)
    update, other = world.table.update, list[int]()

    def overtaken(*parts: object, **named: object) -> object:
        if not other:
            other.append(0)
            world.clock.advance(seconds=1)
            other.append(world.reconcile().count(Action.ADOPTED))
        return update(*parts, **named)  # type: ignore[arg-type]

    world.table.update = overtaken  # type: ignore[method-assign,assignment]
    report = world.reconcile()
    assert (report.count(Action.ADOPTED), report.count(Action.MOVED_ON), other[1]) == (0, 1, 1)
    assert len(world.messages()) == 1


# -- backlogs


def test_nothing_is_written_while_the_lanes_backlog_explains_the_wait(world: World) -> None:
    world.reconcile()
    for number in range(20):
        world.deliver(f"evt-{number}")
    writes = 0
    for minute in range(1, 26 * 60):
        world.clock.advance(minutes=1)
        backlog(world, LARGE_BACKLOG + 1, oldest=timedelta(minutes=minute))
        writes += write_calls(world)
    assert writes == 0
    backlog(world, 20, oldest=timedelta(0))
    world.work()
    with counted(world) as reads:
        world.pass_minutes(60)
    assert set(reads.values()) == {1}
    assert len(world.handled) == 20


@pytest.mark.parametrize("oldest", [None, timedelta(hours=5)])
def test_a_run_that_a_backlog_hid_is_adopted_once_the_backlog_is_younger(
    world: World, oldest: timedelta | None
) -> None:
    world.reconcile()
    unsent(world)
    backlog(world, LARGE_BACKLOG + 1, oldest=oldest)
    for _ in range(8):
        world.clock.advance(minutes=30)
        assert adopted(world) == 0
    assert world.messages() == []
    backlog(world, LARGE_BACKLOG + 1, oldest=timedelta(hours=1))
    assert adopted(world) == 1
    assert world.generations() == [0]


def test_a_lanes_backlog_does_not_delay_the_second_look_at_other_lanes() -> None:
    world = World(with_handlers(handler("acme.a"), handler("acme.b", lane="slow")))
    world.reconcile()
    world.table.lag = lambda unseen: unseen  # the first look misses it
    world.plan.fail("SendMessageBatch")
    world.deliver()
    backlog(world, LARGE_BACKLOG + 1, oldest=timedelta(hours=9), lane="slow")
    world.clock.advance(minutes=4)
    world.reconcile()
    world.table.lag = lambda unseen: 0
    world.clock.advance(minutes=32)
    assert adopted(world) == 1
    assert world.run(handler="acme.a").status is Status.PENDING
    assert world.peek(CURSORS)["lanes"].keys() == {"slow"}
    backlog(world, 0, lane="slow")
    world.clock.advance(minutes=10)
    assert adopted(world) == 1
    assert world.run(handler="acme.b").status is Status.PENDING
    assert world.peek(CURSORS)["lanes"] == {}


def test_the_events_of_a_lane_that_was_removed_are_read_again() -> None:
    world = World(with_handlers(handler("acme.a"), handler("acme.b", lane="slow")))
    world.reconcile()
    backlog(world, LARGE_BACKLOG + 1, oldest=timedelta(hours=9), lane="slow")
    world.plan.fail("SendMessageBatch")
    world.deliver()
    world.clock.advance(hours=2)
    world.reconcile()
    assert world.row(handler="acme.b") is None
    world.deploy(with_handlers(handler("acme.a"), handler("acme.b")))
    world.clock.advance(minutes=5)
    assert adopted(world) == 1
    assert world.run(handler="acme.b").status is Status.PENDING
