"""Handlers that keep an order in the whole inbox: its processor, its reconciler, its replay."""

import json
from random import Random
from typing import Any

import pytest

from tests.unit.support.world import World, handler, with_handlers
from webhook_inbox import Context, Event, Permanent, Skipped, Transient, latest, sequence
from webhook_inbox.domain.model import Status
from webhook_inbox.handlers.ordering.declaration import Ordering

NAME = "acme.sync"


def inbox(ordering: Ordering) -> World:
    return World(with_handlers(handler(NAME, order=ordering.order)))


def deliver(world: World, number: int, ordering_key: str = "a") -> None:
    body = json.dumps({"id": ordering_key, "n": number}).encode()
    assert world.deliver(f"{ordering_key}-{number}", body=body).status == 202


def status(world: World, number: int, ordering_key: str = "a") -> Status:
    return world.run(f"{ordering_key}-{number}", NAME).status


def handled(world: World) -> list[str]:
    return [event_id for _, event_id, _ in world.handled]


def test_a_sequence_waits_parked_and_is_woken() -> None:
    world = inbox(sequence("id", "n"))
    for number in (3, 2):
        deliver(world, number)
        world.work()
    run = world.run("a-3", NAME)
    assert (run.status, run.parked, run.attempt_count) == (Status.DEFERRED, True, 0)
    assert world.messages() == []
    deliver(world, 1)
    world.work()
    assert handled(world) == ["a-1", "a-2", "a-3"]


def test_a_stale_version_is_skipped_with_its_reason() -> None:
    world = inbox(latest("id", "n"))
    for number in (5, 3):
        deliver(world, number)
        world.work()
    run = world.run("a-3", NAME)
    assert run.status is Status.SKIPPED
    assert run.last_error == "stale: version 3, and 5 was applied by a-5"
    assert handled(world) == ["a-5"]


def test_a_skip_of_the_handler_wakes_the_successor() -> None:
    world = inbox(sequence("id", "n"))
    world.script(NAME, Skipped("not for us"))
    for number in (2, 1):
        deliver(world, number)
        world.work()
    assert status(world, 1) is Status.SKIPPED
    assert status(world, 2) is Status.DONE


def test_a_gap_is_held_for_a_person_after_its_timeout() -> None:
    world = inbox(sequence("id", "n", timeout="10m"))
    deliver(world, 2)
    world.pass_minutes(12)
    run = world.run("a-2", NAME)
    assert run.status is Status.HELD
    assert run.held["subject"] == "order"
    assert run.held["shows"] == "number 1 of a"


def test_a_dead_predecessor_that_is_replayed_wakes_its_successor() -> None:
    world = inbox(sequence("id", "n"))
    world.script(NAME, Permanent("422"))
    for number in (1, 2):
        deliver(world, number)
        world.work()
    assert status(world, 1) is Status.DEAD_LETTER
    assert status(world, 2) is Status.DEFERRED
    world.replay()
    world.work()
    assert (status(world, 1), status(world, 2)) == (Status.DONE, Status.DONE)


def test_what_an_operator_forces_runs_though_it_is_stale() -> None:
    world = inbox(latest("id", "n"))
    for number in (5, 3):
        deliver(world, number)
        world.work()
    world.replay(source="acme", handler=NAME, event_ids=["a-3"], force=True)
    world.work()
    assert handled(world) == ["a-5", "a-3"]
    deliver(world, 4)
    world.work()
    assert status(world, 4) is Status.SKIPPED


def test_a_body_without_the_path_dies_and_names_path_and_handler() -> None:
    world = inbox(sequence("account", "n"))
    deliver(world, 1)
    world.work()
    run = world.run("a-1", NAME)
    assert run.status is Status.DEAD_LETTER
    assert f"handler {NAME!r} needs the ordering key at 'account'" in run.last_error


def test_a_body_that_is_no_json_dies() -> None:
    world = inbox(latest("id", "n"))
    world.deliver("a-1", body=b"id=a&n=1")
    world.work()
    assert "the body is not JSON" in world.run("a-1", NAME).last_error


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(
    "ordering", [latest("id", "n"), sequence("id", "n")], ids=["latest", "seq"]
)
def test_shuffled_deliveries_of_many_ordering_keys_keep_their_order(
    ordering: Ordering, seed: int
) -> None:
    world, dice = inbox(ordering), Random(seed)
    applied: dict[str, list[int]] = {"a": [], "b": [], "c": []}

    def act(event: Event, ctx: Context) -> None:
        if dice.random() < 0.2:
            raise Transient("down")
        body: Any = event.json()
        applied[body["id"]].append(body["n"])

    world.behaviours[NAME] = act
    deliveries = [(number, ordering_key) for number in range(1, 16) for ordering_key in applied]
    dice.shuffle(deliveries)
    for number, ordering_key in deliveries:
        deliver(world, number, ordering_key)
        if dice.random() < 0.5:
            world.work_once()
    world.run_until_quiet()
    for numbers in applied.values():
        assert numbers == sorted(set(numbers))
        assert numbers[-1] == 15
        if ordering.order.kind == "sequence":
            assert numbers == list(range(1, 16))
