"""Choices of queues, operators and deployments, and their effects."""

from dataclasses import replace

from simulation.engine.world import VISIBILITY, World
from simulation.worlds.scenario import Budget
from tests.simulation.tiny import (
    RUN,
    TINY,
    WORKER,
    calls,
    happens,
    ingested,
    message_id,
    offered,
    received,
    seconds,
    up_to,
)

FAULTY = replace(
    TINY, faults=("throttled", "lost", "redelivered"), budget=Budget(faults=2, jumps=5)
)


def until_visible(world: World) -> None:
    while not world.aws.queues["default"].visible():
        happens(world, "time")


def test_a_burned_message_was_received_and_comes_back_after_its_visibility_timeout() -> None:
    world = ingested(FAULTY)
    happens(world, "throttles", "default", message_id(world))
    queue = world.aws.queues["default"]
    assert (queue.visible(), world.jobs, world.observer.receives) == ([], {}, {})
    assert queue.snapshot()[1][0][4] == 1
    until_visible(world)
    assert seconds(world) == VISIBILITY
    assert len(queue.visible()) == 1


def test_a_lost_message_is_gone_and_known_to_be() -> None:
    world = ingested(FAULTY)
    happens(world, "loses", "default", message_id(world))
    assert len(world.aws.queues["default"]) == 0
    assert world.observer.lost == {RUN}


def test_a_message_that_is_worked_on_is_seen_again() -> None:
    world = received(FAULTY, workers=2)
    queue = world.aws.queues["default"]
    assert queue.visible() == []
    happens(world, "reappears", "default", message_id(world))
    happens(world, "receives", "default", message_id(world))
    assert set(world.jobs) == {WORKER, "worker 2"}
    assert world.observer.receives == {RUN: 2}


def test_a_delayed_message_is_not_seen_early() -> None:
    world = ingested(FAULTY)
    queue = world.aws.queues["default"]
    queue.take(message_id(world), hidden_for=30)
    assert offered(world, "reappears") != []
    (fields,) = queue.snapshot()[1]
    queue.restore((1, ((*fields[:4], 0, *fields[5:]),), ()))
    assert offered(world, "reappears") == []


def test_a_message_received_too_often_moves_to_the_dlq_and_no_worker_begins() -> None:
    world = ingested(FAULTY, max_receive_count=1)
    happens(world, "throttles", "default", message_id(world))
    until_visible(world)
    happens(world, "receives", "default", message_id(world))
    assert world.jobs == {}
    assert (len(world.aws.queues["default"]), len(world.aws.dlqs["default"])) == (0, 1)


def test_a_redrive_moves_the_dead_back_some_seconds_later() -> None:
    world = ingested(FAULTY, max_receive_count=1, budget=Budget(faults=1, jumps=9, redrives=1))
    assert offered(world, "redrives") == []
    happens(world, "throttles", "default", message_id(world))
    until_visible(world)
    happens(world, "receives", "default", message_id(world))
    happens(world, "redrives", "default")
    assert seconds(world) == VISIBILITY + 5
    assert (len(world.aws.queues["default"]), len(world.aws.dlqs["default"])) == (1, 0)
    assert world.left.redrives == 0


def test_a_deployment_is_what_begins_from_now_on() -> None:
    broken = replace(FAULTY.deployments[0], name="broken", broken=frozenset({"mail"}))
    two = (*FAULTY.deployments, broken)
    world = received(FAULTY, deployments=two, budget=Budget(deployments=1))
    happens(world, "deploys", "broken")
    assert world.observer.unloadable == {"mail"}
    assert up_to(world, WORKER, calls("begin"))
    assert offered(world, "deploys") == []
