"""Every kind of fault has exactly its documented effect."""

from dataclasses import replace

import pytest

from simulation.engine import invocations
from simulation.engine.choices import choices
from simulation.engine.invocations import LOST_ANSWER
from simulation.engine.stepping import Node
from simulation.engine.world import THAWS_AFTER_MS, World
from simulation.worlds.builders import BOTH, FIRST
from simulation.worlds.scenario import Budget, Scenario
from tests.simulation.tiny import (
    INGEST,
    RUN,
    TINY,
    WORKER,
    calls,
    ends,
    fresh,
    happens,
    ingested,
    offered,
    one_step,
    received,
    row,
    up_to,
)
from webhook_inbox.domain.errors import Unavailable
from webhook_inbox.domain.ports import Page
from webhook_inbox.ledger.schema import event_key

FAULTS = (
    "before",
    "after",
    "twice",
    "delayed",
    "refused",
    "killed",
    "throttled",
    "lost",
    "redelivered",
)
FAULTY = replace(TINY, faults=(*FAULTS, "frozen"), lag=True, budget=Budget(faults=2, jumps=5))


def arrived(scenario: Scenario = FAULTY) -> World:
    """Returns a world in which ingest is about to store the first event."""
    world = fresh(scenario)
    invocations.deliver(world, FIRST)
    assert up_to(world, INGEST, calls("put"))
    return world


def stored(world: World) -> bool:
    return any(row["sk"] == "event" for row in world.aws.table.rows())


def led_to(world: World, slot: str) -> Node:
    return world.jobs[slot].node


@pytest.mark.parametrize(
    ("how", "effect", "answered"),
    [
        ("ok", True, True),
        ("before", False, False),
        ("after", True, False),
        ("twice", True, True),
        ("delayed", False, False),
    ],
)
def test_a_fault_decides_about_the_effect_and_the_answer(
    how: str, effect: bool, answered: bool
) -> None:
    world = arrived()
    happens(world, "step", INGEST, how)
    assert stored(world) is effect
    reached = led_to(world, INGEST).answer
    assert reached is not None
    # The second of two equal conditional writes fails on the first.
    assert (reached.error is Unavailable) is not answered
    assert (reached == LOST_ANSWER) is not answered
    assert world.left.faults == (2 if how == "ok" else 1)


@pytest.mark.parametrize("how", ["before", "after", "delayed"])
def test_a_run_whose_answer_failed_is_noted_as_troubled(how: str) -> None:
    world = arrived()
    happens(world, "step", INGEST, how)
    assert world.observer.troubled == {RUN}


@pytest.mark.parametrize("how", ["ok", "twice"])
def test_an_absorbed_fault_does_not_mark_a_run_as_troubled(how: str) -> None:
    world = arrived()
    happens(world, "step", INGEST, how)
    assert world.observer.troubled == set()


def test_a_call_that_times_out_arrives_later() -> None:
    world = arrived()
    happens(world, "step", INGEST, "delayed")
    assert not stored(world)
    happens(world, "arrives", "0")
    assert stored(world)
    assert offered(world, "arrives") == []


def test_a_repeated_send_puts_two_messages_into_the_queue() -> None:
    world = arrived()
    up_to(world, INGEST, calls("send"))
    happens(world, "step", INGEST, "twice")
    assert len(world.aws.queues["default"]) == 2
    assert world.observer.sends[RUN] == 2


def test_a_refusing_queue_takes_all_but_the_first_message() -> None:
    world = arrived(replace(FAULTY, deployments=(BOTH_IN_ONE_LANE,)))
    sent = up_to(world, INGEST, calls("send"))
    assert sent is not None
    first, second = sent.args[0]
    happens(world, "step", INGEST, "refused")
    assert world.aws.queues["default"].bodies == [second.body]
    assert (answer := led_to(world, INGEST).answer) is not None
    assert list(answer.value) == [first]


def test_a_queue_refuses_no_longer_than_one_call() -> None:
    world = arrived()
    sent = up_to(world, INGEST, calls("send"))
    assert sent is not None
    world.execute(sent, invocations._actor(world, world.jobs[INGEST]), refuses=True)
    assert len(world.aws.queues["default"]) == 0
    one_step(world, INGEST)
    assert len(world.aws.queues["default"]) == 1


BOTH_IN_ONE_LANE = replace(
    BOTH,
    manifest=replace(
        BOTH.manifest,
        handlers={
            name: replace(spec, lane="default") for name, spec in BOTH.manifest.handlers.items()
        },
    ),
)


RECONCILER = "reconciler 1"


def looking() -> World:
    """Returns a world in which the reconciler looks where the index should hold the event."""
    world = ingested(FAULTY, budget=Budget(faults=20))
    world.advance(world.clock.ms + 600_000)
    invocations.reconcile(world)
    event = world.aws.table.row(event_key("acme", "e1"))
    assert event is not None
    while (call := led_to(world, RECONCILER).call) and event["received_bucket"] not in call.args:
        how = "stale" if ("step", RECONCILER, "stale") in set(choices(world)) else "ok"
        happens(world, "step", RECONCILER, how)
    return world


@pytest.mark.parametrize(("how", "found"), [("ok", 1), ("stale", 0)])
def test_a_stale_read_misses_what_was_just_written(how: str, found: int) -> None:
    world = looking()
    happens(world, "step", RECONCILER, how)
    answers = []
    at: Node | None = led_to(world, RECONCILER)
    while at is not None:
        answers.append(at.answer.value if at.answer else None)
        at = at.parent
    pages = [answer for answer in answers if isinstance(answer, Page)]
    assert sum(len(page.items) for page in pages) == found
    assert world.aws.stale is False
    assert world.observer.troubled == set()


def test_only_what_writes_is_done_twice_or_late_and_only_a_send_refused() -> None:
    world = arrived()
    assert kinds(world, INGEST) == {"ok", "before", "after", "twice", "delayed"}
    up_to(world, INGEST, calls("send"))
    assert kinds(world, INGEST) == {"ok", "before", "after", "twice", "delayed", "refused"}
    up_to(world, INGEST, ends)
    assert kinds(world, INGEST) == {"ok"}
    assert kinds(looking(), RECONCILER) == {"ok", "before", "stale"}
    worker = received(FAULTY)
    assert up_to(worker, WORKER, calls("get"))
    assert kinds(worker, WORKER) == {"ok", "before"}  # it reads consistently
    up_to(worker, WORKER, calls("post"))
    assert kinds(worker, WORKER) == {"ok", "before", "after", "delayed"}
    up_to(worker, WORKER, ends)
    assert kinds(worker, WORKER) == {"ok", "undeleted"}


def kinds(world: World, slot: str) -> set[str]:
    return {how for _, _, how in offered(world, "step", slot)}


def test_without_faults_left_all_goes_well() -> None:
    world = arrived(replace(FAULTY, budget=Budget()))
    assert list(map(tuple, offered(world))) == [("step", INGEST, "ok")]


def test_a_deletion_that_fails_leaves_the_message_where_it_was() -> None:
    world = received(FAULTY)
    up_to(world, WORKER, ends)
    happens(world, "step", WORKER, "undeleted")
    assert world.jobs == {}
    assert len(world.aws.queues["default"]) == 1


def test_a_worker_that_ends_well_deletes_its_message() -> None:
    world = received(FAULTY)
    up_to(world, WORKER, ends)
    happens(world, "step", WORKER, "ok")
    assert len(world.aws.queues["default"]) == 0
    assert (found := row(world)) is not None
    assert found["status"] == "done"
    assert world.observer.posts == {RUN: 1}


def test_the_killed_leave_behind_what_they_had_done_by_then() -> None:
    world = received(FAULTY)
    up_to(world, WORKER, calls("begin"))
    happens(world, "killed", WORKER)
    assert world.jobs == {}
    assert (found := row(world)) is not None
    assert found["status"] == "processing"
    assert len(world.aws.queues["default"]) == 1
    assert world.observer.troubled == {RUN}


def test_the_frozen_thaw_after_their_time_and_go_on() -> None:
    world = received(FAULTY)
    assert offered(world, "freezes") == []
    up_to(world, WORKER, calls("begin"))
    stops = world.jobs[WORKER].ends
    happens(world, "freezes", WORKER)
    assert world.clock.ms == stops + THAWS_AFTER_MS
    assert world.jobs[WORKER].overdue
    world.advance(world.clock.ms + 60_000)
    assert WORKER in world.jobs
    assert offered(world, "freezes") == []
    one_step(world, WORKER)
    assert world.observer.succeeded == {RUN}


def test_lambda_stops_what_is_over_time_but_not_the_frozen() -> None:
    world = received(FAULTY)
    world.advance(world.jobs[WORKER].ends - 1)
    assert WORKER in world.jobs
    world.advance(world.jobs[WORKER].ends)
    assert world.jobs == {}
