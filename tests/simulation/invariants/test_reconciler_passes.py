"""A reconciler pass that leaves due work undone is detected."""

import pytest

from simulation.engine import invocations
from simulation.engine.virtual_time import FIRST_MS, next_pass
from simulation.engine.world import World
from simulation.invariants import convergence as healing
from simulation.invariants.convergence import converge
from simulation.invariants.observer import Violation
from tests.simulation.tiny import RUN, ingested, message_id, row
from webhook_inbox.domain.ports import Change, Outgoing
from webhook_inbox.ledger.schema import run_key
from webhook_inbox.queue.message import RunMessage


def change(world: World, **parts: object) -> None:
    """Changes the run's row behind the observer's back."""
    world.aws.table.update(run_key(*RUN), Change(set=parts))
    world.aws.table.written.clear()


def due(world: World) -> World:
    """Lets time pass until the reconciler has something to do."""
    moment = next_pass(world)
    assert moment is not None
    world.advance(moment)
    return world


def pending() -> World:
    """Returns a world with a run that is pending, watched, and without its message."""
    world = ingested()
    converge(world)
    now = world.clock.ms
    parts = {"status": "pending", "due_bucket": "watch#mail#1", "due_at": now, "last_at": now}
    change(world, **parts)
    return world


def test_a_run_that_is_due_is_not_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    world = due(pending())
    snapshot = world.snapshot()
    healing._pass(world)
    world.restore(snapshot)
    monkeypatch.setattr(invocations, "reconcile", lambda world: None)
    with pytest.raises(Violation, match="due runs were not handled"):
        healing._pass(world)


def test_a_pending_run_is_sent() -> None:
    world = pending()
    change(world, due_at=world.clock.ms + 3_600_000)
    snapshot = world.snapshot()
    world.aws.queues["default"].send([Outgoing(RunMessage(*RUN).encode())])
    healing._pass(world)
    world.restore(snapshot)
    with pytest.raises(Violation, match="was made pending but not sent"):
        healing._pass(world)


def test_an_event_whose_runs_were_never_sent_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    world = ingested()
    world.aws.queues["default"].lose(message_id(world))
    world.advance(world.clock.ms + 2 * FIRST_MS)
    snapshot = world.snapshot()
    healing._pass(world)
    assert (found := row(world)) is not None
    assert found["status"] == "pending"
    world.restore(snapshot)
    monkeypatch.setattr(invocations, "reconcile", lambda world: None)
    with pytest.raises(Violation, match="mail of e1 was not enqueued"):
        healing._pass(world)


def test_an_event_of_a_moment_ago_is_left_to_ingest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(invocations, "reconcile", lambda world: None)
    healing._pass(ingested())
