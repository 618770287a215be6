"""Worlds converge once faults stop, and incomplete results are detected."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from simulation.engine import invocations
from simulation.engine.virtual_time import quiet
from simulation.engine.world import World
from simulation.invariants import convergence as healing
from simulation.invariants.convergence import DLQ_RETENTION_MS, check, converge
from simulation.invariants.observer import Violation
from simulation.worlds.builders import FIRST
from simulation.worlds.scenario import REFUSES, Budget
from tests.simulation.tiny import (
    INGEST,
    RUN,
    TINY,
    WORKER,
    calls,
    fresh,
    happens,
    ingested,
    message_id,
    received,
    row,
    seconds,
    up_to,
)
from webhook_inbox.domain.ports import Change, Outgoing
from webhook_inbox.ledger.schema import event_key, run_key
from webhook_inbox.queue.message import RunMessage
from webhook_inbox.reconciler.reconciler import SWEEPS

DEADLY = replace(TINY, always={"mail": REFUSES}, max_receive_count=2)
FAULTY = replace(TINY, budget=Budget(faults=3), faults=("before", "killed", "delayed", "lost"))


def converged(world: World) -> World:
    converge(world)
    return world


# -- it converges


def test_an_accepted_event_is_done_without_time_passing() -> None:
    world = converged(ingested())
    assert (found := row(world)) is not None
    assert found["status"] == "done"
    assert seconds(world) == 0
    assert quiet(world)


def test_an_unacknowledged_sender_retries() -> None:
    world = fresh(FAULTY)
    invocations.deliver(world, FIRST)
    happens(world, "step", INGEST, "before")
    converge(world)
    assert world.tries == {"first": 2}
    assert world.observer.posts == {RUN: 1}


def test_a_sender_without_retries_does_not_retry() -> None:
    world = fresh(FAULTY, webhooks=(replace(FIRST, retries=False),))
    invocations.deliver(world, world.scenario.webhooks[0])
    happens(world, "step", INGEST, "before")
    converge(world)
    assert world.tries == {"first": 1}
    assert {row["pk"] for row in world.aws.table.rows()} == {"reconciler", "due_index"}


def test_a_killed_worker_s_run_is_done_after_its_message_comes_back() -> None:
    world = received(FAULTY)
    up_to(world, WORKER, calls("begin"))
    happens(world, "killed", WORKER)
    converge(world)
    assert seconds(world) >= 300
    assert world.observer.posts == {RUN: 1}


def test_the_reconciler_finds_what_the_queue_lost() -> None:
    world = ingested(FAULTY)
    happens(world, "loses", "default", message_id(world))
    converge(world)
    assert world.observer.posts == {RUN: 1}
    assert world.observer.sends == {RUN: 2}


def test_a_call_that_is_late_lands() -> None:
    world = fresh(FAULTY)
    invocations.deliver(world, FIRST)
    happens(world, "step", INGEST, "delayed")
    converge(world)
    assert world.late == ()


def test_a_rejected_run_is_dead_and_in_the_dlq_after_the_sweep() -> None:
    world = converged(ingested(DEADLY))
    assert (found := row(world)) is not None
    assert found["status"] == "dead_letter"
    assert len(world.aws.dlqs["default"]) == 1
    swept = world.aws.table.row(SWEEPS)
    assert swept is not None
    assert swept["swept_at"] == world.clock.ms


# -- it does not


def test_a_world_that_does_not_settle_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(healing, "STEPS", 3)
    with pytest.raises(Violation, match=r"G1: not settled after 0\.0 h"):
        converge(ingested())


def test_a_world_that_takes_too_long_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(healing, "CONVERGED_WITHIN_MS", 1000)
    world = ingested(FAULTY)
    happens(world, "loses", "default", message_id(world))
    with pytest.raises(Violation, match="not settled"):
        converge(world)


Damage = Callable[[World], object]


def change(**parts: object) -> Damage:
    def damage(world: World) -> None:
        world.aws.table.update(run_key(*RUN), Change(set=parts))
        world.aws.table.written.clear()  # The observer must not see this change.

    return damage


DAMAGES: dict[str, tuple[str, str, Damage]] = {
    "the event is gone": (
        "G1",
        "acknowledged but is missing",
        lambda world: world.aws.table.delete(event_key(*RUN[:2])),
    ),
    "the run is gone": (
        "G1",
        "mail of event#acme#e1 ended as None",
        lambda world: world.aws.table.delete(run_key(*RUN)),
    ),
    "the run still waits": ("G1", "mail of event#acme#e1 ended as failed", change(status="failed")),
    "the sink knows nothing": ("G1", "its sink was not called", lambda w: w.observer.posts.clear()),
    "the run was posted twice": (
        "G8",
        "no fault affected",
        lambda world: world.observer.posts.update({RUN: 2}),
    ),
    "the run was tried twice": ("G8", "no fault affected", change(attempt_count=2)),
    "the run is dead without a reason": (
        "G8",
        "no fault affected",
        change(status="dead_letter", dead_at=0, last_error="permanent: no"),
    ),
    "there were more messages than needed": (
        "flood",
        "100 messages",
        lambda world: world.observer.sends.update({RUN: 100}),
    ),
    "more was received than sent": (
        "G8",
        "1 sent, 2 received",
        lambda world: world.observer.receives.update({RUN: 2}),
    ),
    "a copy of what is done is in the DLQ": (
        "G1",
        "is done but is in the DLQ",
        lambda world: world.aws.dlqs["default"].send([Outgoing(RunMessage(*RUN).encode())]),
    ),
}


@pytest.mark.parametrize("name", DAMAGES)
def test_a_damage_is_seen_in_a_world_that_was_sound(name: str) -> None:
    guarantee, text, damage = DAMAGES[name]
    world = converged(ingested())
    check(world)
    damage(world)
    with pytest.raises(Violation, match=text) as violation:
        check(world)
    assert violation.value.guarantee == guarantee


def test_the_dead_are_in_the_dlq_until_its_retention_is_over() -> None:
    world = converged(ingested(DEADLY))
    world.aws.dlqs["default"].lose(message_id_of_dead(world))
    with pytest.raises(Violation, match="is dead but not in the DLQ"):
        check(world)
    world.clock.ms += DLQ_RETENTION_MS
    check(world)


def message_id_of_dead(world: World) -> str:
    return str(world.aws.dlqs["default"].snapshot()[1][0][0])


@pytest.mark.parametrize("why", ["lost: never received", "expired: waited too long"])
def test_a_lost_run_is_dead_without_a_message(why: str) -> None:
    world = converged(ingested(DEADLY))
    world.aws.dlqs["default"].lose(message_id_of_dead(world))
    change(last_error=why)(world)
    check(world)


@pytest.mark.parametrize(("tried", "hope"), [(True, 0), (False, 1)])
def test_a_redriven_run_is_attempted_again(tried: bool, hope: int) -> None:
    world = converged(ingested(DEADLY))
    world.observer.redriven_runs[RUN] = hope
    if tried:
        check(world)
        return
    with pytest.raises(Violation, match="was redriven but not attempted again"):
        check(world)
