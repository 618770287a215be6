"""The smallest worlds, and functions that advance them."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

from simulation.engine import invocations
from simulation.engine.apply import apply
from simulation.engine.choices import Choice, choices
from simulation.engine.stepping import Call, Stepping
from simulation.engine.world import World
from simulation.worlds.builders import FIRST, MAIL
from simulation.worlds.scenario import SUCCEEDS, Budget, Scenario
from webhook_inbox.adapters.memory.system import START
from webhook_inbox.domain.ports import Item
from webhook_inbox.ledger.schema import run_key

RUN: Final = ("acme", "e1", "mail")
TINY: Final = Scenario("tiny", (FIRST,), (MAIL,), workers=1, receivers=1)
INGEST, WORKER = "ingest 1", "worker 1"


def with_budget(scenario: Scenario = TINY, **budget: int) -> Scenario:
    """Returns a scenario with this budget."""
    return replace(scenario, budget=Budget(**budget))


def fresh(scenario: Scenario = TINY, **parts: Any) -> World:
    """Returns a world before anything has happened."""
    return World(replace(scenario, **parts), Stepping())


def finish(world: World, slot: str) -> None:
    """Runs an invocation to its end without a fault."""
    while slot in world.jobs:
        one_step(world, slot)


def one_step(world: World, slot: str, how: str = "ok") -> None:
    """Makes the next call of an invocation."""
    call = world.jobs[slot].node.call
    if call is not None and call.method == "begin":
        invocations.handle(world, slot, SUCCEEDS)
    else:
        invocations.step(world, slot, how)


def up_to(world: World, slot: str, wanted: Callable[[Call | None], bool]) -> Call | None:
    """Runs an invocation until its next call is the wanted one."""
    while not wanted(world.jobs[slot].node.call):
        one_step(world, slot)
    return world.jobs[slot].node.call


def calls(method: str) -> Callable[[Call | None], bool]:
    """Returns a predicate for calls of a method."""
    return lambda call: call is not None and call.method == method


def ends(call: Call | None) -> bool:
    """Returns whether an invocation has no call left."""
    return call is None


def ingested(scenario: Scenario = TINY, **parts: Any) -> World:
    """Returns a world whose first webhook was acknowledged."""
    world = fresh(scenario, **parts)
    invocations.deliver(world, scenario.webhooks[0])
    finish(world, INGEST)
    return world


def received(scenario: Scenario = TINY, **parts: Any) -> World:
    """Returns a world in which a worker has just received the only message."""
    world = ingested(scenario, **parts)
    invocations.receive(world, "default", message_id(world))
    return world


def message_id(world: World, lane: str = "default") -> str:
    """Returns the id of the first message of a lane."""
    return str(world.aws.queues[lane].snapshot()[1][0][0])


def row(world: World) -> Item | None:
    """Returns the row of the first webhook's run."""
    return world.aws.table.row(run_key(*RUN))


def offered(world: World, *prefix: str) -> list[Choice]:
    """Returns the possible choices with this prefix."""
    return [choice for choice in choices(world) if choice[: len(prefix)] == prefix]


def happens(world: World, *choice: str) -> None:
    """Applies a possible choice."""
    assert choice in set(choices(world))
    apply(world, choice)


def seconds(world: World) -> float:
    """Returns the seconds since the start."""
    return (world.clock.now() - START).total_seconds()
