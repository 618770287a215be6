"""The bounded pass over a DLQ: what is settled, held or replayed goes, all else stays visible."""

from datetime import timedelta

import pytest

from tests.unit.support.world import World
from webhook_inbox.domain.errors import Unavailable
from webhook_inbox.domain.ports import Outgoing
from webhook_inbox.queue import dead_letters
from webhook_inbox.queue.message import RunMessage


def sweep(world: World, *, seconds: float = 300, finishes: bool = True) -> int:
    deadline = world.now + timedelta(seconds=seconds)
    queue = world.dlqs["default"]
    swept = dead_letters.sweep(queue, world.table, clock=world.clock, deadline=deadline)
    assert swept.finished is finishes
    return swept.removed


def lay(world: World, *bodies: str) -> None:
    world.dlqs["default"].send([Outgoing(body) for body in bodies])


@pytest.mark.parametrize("status", ["done", "skipped", "held"])
def test_the_copy_of_a_run_that_is_finished_or_with_a_person_is_removed(
    world: World, status: str
) -> None:
    world.dead()
    world.alter(status=status)
    assert sweep(world) == 1
    assert len(world.dlqs["default"]) == 0


def test_the_copy_of_a_replayed_run_is_removed(world: World) -> None:
    world.dead()
    world.alter(generation=1, status="pending")
    assert sweep(world) == 1


@pytest.mark.parametrize("status", ["dead_letter", "failed", "deferred", "pending"])
def test_the_copy_of_any_other_run_stays(world: World, status: str) -> None:
    world.dead()
    world.alter(status=status)
    assert sweep(world) == 0
    assert len(world.dlqs["default"]) == 1


def test_what_stays_can_be_redriven_at_once(world: World) -> None:
    world.dead()
    sweep(world)
    assert world.redrive() == 1


@pytest.mark.parametrize(
    "body", ["hello", RunMessage("acme", "nobody-knows", "acme.fulfil").encode()]
)
def test_what_is_not_known_stays(world: World, body: str) -> None:
    lay(world, body)
    assert sweep(world) == 0
    assert world.dlqs["default"].bodies == [body]


def test_it_sweeps_until_nothing_is_left(world: World) -> None:
    world.dead()
    world.alter(status="done")
    body = world.dlqs["default"].bodies[0]
    lay(world, *(f"foreign {number}" for number in range(300)), *[body] * 1000)
    assert sweep(world) == 1001
    assert len(world.dlqs["default"]) == 300
    assert world.redrive() == 300


def test_an_empty_dlq_costs_one_call(world: World) -> None:
    world.plan.operations()
    assert sweep(world) == 0
    assert world.plan.operations() == ["ReceiveMessage"]


def test_it_ends_when_its_time_does(world: World) -> None:
    lay(world, *(f"foreign {number}" for number in range(300)))
    queue, receive = world.dlqs["default"], world.dlqs["default"].receive

    def slowly(limit: int, *, hidden_for: int) -> object:
        world.clock.advance(seconds=10)
        return receive(limit, hidden_for=hidden_for)

    queue.receive = slowly  # type: ignore[method-assign,assignment]
    world.plan.operations()
    sweep(world, seconds=60, finishes=False)
    assert world.plan.operations().count("ReceiveMessage") == 4
    assert world.redrive() == 300


@pytest.mark.parametrize("operation", ["ReceiveMessage", "BatchGetItem", "DeleteMessage"])
def test_a_failing_call_is_reported(world: World, operation: str) -> None:
    world.dead()
    world.alter(status="done")
    world.plan.fail(operation)
    with pytest.raises(Unavailable):
        sweep(world)
    world.clock.advance(minutes=6)
    assert sweep(world) == 1
