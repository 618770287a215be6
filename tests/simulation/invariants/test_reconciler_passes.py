"""A reconciler pass that leaves due work undone is detected."""

from datetime import timedelta

import pytest

from simulation.engine import invocations
from simulation.engine.virtual_time import FIRST_MS, next_pass
from simulation.engine.world import VISIBILITY, World
from simulation.invariants import convergence as healing
from simulation.invariants.convergence import converge
from simulation.invariants.observer import Violation
from tests.simulation.tiny import RUN, calls, finish, ingested, message_id, one_step, row, up_to
from webhook_inbox.domain.ports import Change, Outgoing
from webhook_inbox.ledger.schema import run_key
from webhook_inbox.queue.message import RunMessage
from webhook_inbox.reconciler.overdue import OverdueRuns

RECONCILER = "reconciler 1"


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


def behind() -> World:
    """Returns a world with a run that is due and an old message in its queue."""
    world = pending()
    world.aws.queues["default"].send([Outgoing(RunMessage("acme", "e0", "mail").encode())])
    world.advance(world.clock.ms + 3_600_000)
    change(world, due_at=world.clock.ms - 60_000)
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
    with pytest.raises(Violation, match="mail of event#acme#e1 was not enqueued"):
        healing._pass(world)


def test_an_event_of_a_moment_ago_is_left_to_ingest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(invocations, "reconcile", lambda world: None)
    healing._pass(ingested())


def test_a_run_behind_a_backlog_is_not_written(monkeypatch: pytest.MonkeyPatch) -> None:
    world = behind()
    invocations.reconcile(world)
    finish(world, RECONCILER)
    world = behind()
    monkeypatch.setattr(OverdueRuns, "explained", lambda self, handler: timedelta())
    invocations.reconcile(world)
    with pytest.raises(Violation, match="was written behind a backlog"):
        finish(world, RECONCILER)


def test_a_message_sent_after_the_backlog_was_read_explains_no_wait() -> None:
    world = behind()
    world.aws.queues["default"].take(message_id(world), hidden_for=VISIBILITY)
    invocations.reconcile(world)
    up_to(world, RECONCILER, calls("backlog"))
    one_step(world, RECONCILER)
    world.aws.queues["default"].send([Outgoing(RunMessage("acme", "e2", "mail").encode())])
    finish(world, RECONCILER)
    assert (found := row(world)) is not None
    assert found["due_at"] > world.clock.ms
