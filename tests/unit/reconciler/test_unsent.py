"""Runs that were never enqueued are adopted; first attempts that were abandoned are watched."""

from collections.abc import Iterator
from contextlib import suppress
from datetime import timedelta
from typing import Any

import pytest

from tests.unit.support.world import VISIBILITY, World, handler, with_handlers
from webhook_inbox.adapters.memory import Fault
from webhook_inbox.domain.errors import Unavailable
from webhook_inbox.domain.model import Status
from webhook_inbox.domain.ports import Backlog
from webhook_inbox.ledger.queries import Received
from webhook_inbox.ledger.schema import RECEIVED_SHARDS
from webhook_inbox.queue.lanes import LARGE_BACKLOG
from webhook_inbox.reconciler.reconciler import DLQ_MINUTE, SWEEPS
from webhook_inbox.reconciler.report import Action


def unsent(world: World, event_id: str = "evt-1") -> None:
    """Accepts an event whose message is never sent."""
    world.plan.fail("SendMessageBatch")
    assert world.deliver(event_id).status == 503


def adopted(world: World) -> int:
    return world.reconcile().count(Action.ADOPTED)


# -- adoption


def test_a_run_that_was_never_sent_is_adopted_and_sent(world: World) -> None:
    unsent(world)
    world.clock.advance(minutes=5)
    assert adopted(world) == 1
    run = world.run()
    assert (run.status, run.attempt_count) == (Status.PENDING, 0)
    assert world.generations() == [0]
    world.work()
    assert world.run().status is Status.DONE


def test_behind_a_large_backlog_an_adopted_run_is_watched_and_not_sent_twice(world: World) -> None:
    unsent(world)
    world.clock.advance(minutes=5)
    queue = world.queues["default"]
    asked = queue.backlog
    queue.backlog = lambda: Backlog(LARGE_BACKLOG + 1, None)  # type: ignore[method-assign]
    assert adopted(world) == 1
    assert world.messages() == []
    queue.backlog = asked  # type: ignore[method-assign]
    world.pass_minutes(35)
    assert world.run().status is Status.DONE


def test_it_is_adopted_once(world: World) -> None:
    unsent(world)
    world.clock.advance(minutes=5)
    assert adopted(world) == 1
    world.clock.advance(minutes=5)
    assert adopted(world) == 0
    assert len(world.messages()) == 1


@pytest.mark.parametrize(
    ("age", "wanted"), [(2, 0), (3, 1), (4, 1), (30, 1), (59, 1), (60, 1), (61, 0)]
)
def test_the_window_is_three_to_sixty_minutes_back(age: int, wanted: int) -> None:
    world = World()
    world.clock.advance(minutes=60 - age)
    unsent(world)
    world.clock.advance(minutes=age, seconds=-0.001)  # a delivery takes a millisecond
    assert world.now.minute == 0
    assert adopted(world) == wanted


@pytest.mark.parametrize("minute", range(0, 60, 7))
def test_both_hours_are_read(minute: int) -> None:
    """An event of 23:58 is looked for at 00:05 as one of 00:00 is."""
    world = World()
    world.clock.advance(hours=5, minutes=minute)
    for number in range(12):
        unsent(world, f"evt-{number}")
    world.pass_minutes(10)
    assert {world.run(f"evt-{number}").status for number in range(12)} == {Status.DONE}


def test_it_is_done_every_five_minutes(world: World) -> None:
    for minute in range(1, 5):
        world.plan.operations()
        world.reconcile_at(minute)
        # The shards of two handlers, which handlers are paused, and which are registered.
        assert world.plan.operations().count("Query") == 16 + 2
    world.reconcile_at(5)
    assert world.plan.operations().count("Query") == 16 + 2 + 8 + 8


def test_an_event_that_the_index_does_not_show_yet_is_found_later(world: World) -> None:
    world.table.lag = lambda unseen: unseen
    unsent(world)
    world.clock.advance(minutes=5)
    assert adopted(world) == 0
    world.table.lag = lambda unseen: 0
    world.clock.advance(minutes=5)
    assert adopted(world) == 1


def test_a_run_row_that_a_lagging_read_misses_is_not_adopted(world: World) -> None:
    world.deliver()
    world.table.lag = lambda unseen: 0
    world.reconcile()  # the index knows the event
    world.table.lag = lambda unseen: unseen
    world.work()
    world.clock.advance(minutes=5)
    assert adopted(world) == 0
    assert world.run().status is Status.DONE


def test_only_the_run_without_a_row_is_adopted() -> None:
    world = World(with_handlers(handler("acme.a"), handler("acme.b", lane="slow")))
    world.queues["slow"].refuses = lambda _: True
    world.deliver()
    world.work()
    world.queues["slow"].refuses = lambda _: False
    world.clock.advance(minutes=5)
    assert adopted(world) == 1
    assert [m["handler"] for m in world.messages("slow")] == ["acme.b"]


def test_a_message_that_waits_all_the_while_is_dropped_later(world: World) -> None:
    world.deliver()
    world.clock.advance(minutes=5)
    assert adopted(world) == 1
    world.work()
    assert len(world.handled) == 1
    assert world.messages() == []


def test_an_event_without_handlers_is_nothing_to_adopt(world: World) -> None:
    world.deliver(type_="refunded")
    world.clock.advance(minutes=5)
    assert adopted(world) == 0


def test_a_handler_added_since_gets_no_run_of_older_events(world: World) -> None:
    world.deliver()
    world.work()
    world.deploy(with_handlers(handler("acme.fulfil"), handler("acme.newcomer")))
    world.clock.advance(minutes=5)
    assert adopted(world) == 0


def test_a_run_of_a_handler_that_has_left_is_found_by_the_slow_sweep(world: World) -> None:
    unsent(world)
    world.deploy(with_handlers(handler("github.announce", source="github")))
    world.clock.advance(minutes=5)
    assert adopted(world) == 0
    world.clock.advance(hours=1)
    assert world.reconcile_at(7).count(Action.ADOPTED) == 1


@pytest.mark.parametrize(("minute", "age"), SWEEPS.items())
def test_the_slow_sweep_sees_what_the_window_missed(
    world: World, minute: int, age: timedelta
) -> None:
    unsent(world)
    world.clock.advance(hours=age / timedelta(hours=1))
    assert world.reconcile_at(minute).count(Action.ADOPTED) == 1


def test_each_age_has_a_minute_in_which_nothing_else_takes_its_time() -> None:
    assert not any(minute % 5 == 0 or minute == DLQ_MINUTE for minute in SWEEPS)


def test_over_an_hour_of_passes_every_shard_comes_first(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    first: set[str] = set()

    def received(*_: object, first_shard: int = 0) -> Iterator[list[Received]]:
        first.add(str(first_shard))
        return iter(())

    monkeypatch.setattr(world.ledger, "received", received)
    for _ in range(60):
        world.clock.advance(minutes=1)
        world.reconcile()
    assert len(first) == RECEIVED_SHARDS


def test_an_adoption_that_the_sdk_tried_twice_is_ours(world: World) -> None:
    unsent(world)
    world.clock.advance(minutes=5)
    update = world.table.update

    def twice(*parts: Any, **named: Any) -> Any:
        update(*parts, **named)
        return update(*parts, **named)

    world.table.update = twice  # type: ignore[method-assign]
    assert adopted(world) == 1
    assert world.generations() == [0]


@pytest.mark.parametrize("fault", list(Fault))
@pytest.mark.parametrize("operation", ["UpdateItem", "SendMessageBatch", "BatchGetItem", "Query"])
def test_an_adoption_that_fails_heals(world: World, operation: str, fault: Fault) -> None:
    unsent(world)
    world.clock.advance(minutes=5)
    skip = {"Query": 20}.get(operation, 0)
    world.plan.fail(operation, fault, skip=skip)
    with suppress(Unavailable):  # a pass may fail as a whole; the next one heals
        world.reconcile()
    world.plan.heal()
    world.run_until_quiet()
    assert world.run().status is Status.DONE


def test_an_adopted_run_whose_message_is_lost_is_sent_again(world: World) -> None:
    unsent(world)
    world.clock.advance(minutes=5)
    world.plan.fail("SendMessageBatch")
    report = world.reconcile()
    assert report.count(Action.FAILED) == 1
    assert world.messages() == []
    world.pass_minutes(29)
    assert world.run().status is Status.DONE


def test_a_run_that_is_begun_while_it_is_looked_at_is_left_alone(world: World) -> None:
    world.deliver()
    world.clock.advance(minutes=5)
    update, raced = world.table.update, []

    def overtaken(key: object, change: object, **parts: object) -> object:
        if not raced:
            raced.append(True)
            world.work()
        return update(key, change, **parts)  # type: ignore[arg-type]

    world.table.update = overtaken  # type: ignore[method-assign,assignment]
    report = world.reconcile()
    assert (report.count(Action.ADOPTED), report.count(Action.MOVED_ON)) == (0, 1)
    assert world.run().status is Status.DONE


def test_one_event_that_cannot_be_adopted_does_not_stop_the_others(world: World) -> None:
    unsent(world, "evt-1")
    unsent(world, "evt-2")
    world.clock.advance(minutes=5)
    world.plan.fail("UpdateItem")
    report = world.reconcile()
    assert (report.count(Action.ADOPTED), report.count(Action.FAILED)) == (1, 1)


# -- abandoned first attempts


def test_a_first_attempt_whose_worker_and_message_are_gone_is_watched(world: World) -> None:
    world.deliver()
    message = world.taken()
    world.claim_and_die(message)
    world.queues["default"].delete(message.receipt)
    assert world.run().in_due_index is False
    world.clock.advance(minutes=10)
    report = world.reconcile()
    assert report.count(Action.WATCHED) == 1
    assert world.run().in_due_index


def test_it_is_sent_again_when_it_is_overdue(world: World) -> None:
    world.deliver()
    message = world.taken()
    world.claim_and_die(message)
    world.queues["default"].delete(message.receipt)
    world.pass_minutes(45)
    assert world.run().status is Status.DONE
    assert world.run().attempt_count == 2


def test_it_is_watched_once(world: World) -> None:
    world.deliver()
    message = world.taken()
    world.claim_and_die(message)
    world.queues["default"].delete(message.receipt)
    world.clock.advance(minutes=10)
    world.reconcile()
    world.clock.advance(minutes=5)
    assert world.reconcile().counts == {}


def test_a_first_attempt_that_is_under_way_is_not_watched(world: World) -> None:
    world.deliver()
    world.clock.advance(minutes=4, seconds=30)
    world.claim_and_die(world.taken())
    world.clock.advance(seconds=30)
    assert world.reconcile().count(Action.WATCHED) == 0


def test_an_abandoned_attempt_whose_message_returns_needs_no_reconciler(world: World) -> None:
    world.deliver()
    world.claim_and_die(world.taken())
    world.clock.advance(minutes=10)
    world.reconcile()
    world.clock.advance(seconds=VISIBILITY)
    world.work()
    assert world.run().status is Status.DONE
