"""A message is not deleted while its run depends on it."""

from dataclasses import replace

import pytest

from simulation.engine.stepping import Call
from simulation.engine.world import World
from simulation.invariants.message_deletion import deleted, moved_to_dlq
from simulation.invariants.observer import Violation
from tests.simulation.tiny import RUN, WORKER, calls, finish, received, row, up_to
from webhook_inbox.domain.ports import Change, Message, Outgoing
from webhook_inbox.ledger.schema import run_key
from webhook_inbox.queue.message import RunMessage

REFERENCE = RunMessage(*RUN)
COPY = Outgoing(replace(REFERENCE, generation=1).encode())


def at_work() -> tuple[World, Message]:
    """Returns a world in which a handler is at work, and the message that is its run's only one."""
    world = received()
    up_to(world, WORKER, calls("begin"))
    message = world.jobs[WORKER].message
    assert message is not None
    return world, message


def becomes(world: World, status: str, **parts: object) -> None:
    change = Change(set={"status": status, "generation": 1, "message_id": "gone", **parts})
    world.aws.table.update(run_key(*RUN), change)


@pytest.mark.parametrize("status", ["processing", "failed", "deferred"])
def test_the_only_message_of_a_run_that_waits_is_not_deleted(status: str) -> None:
    world, message = at_work()
    becomes(world, status)
    with pytest.raises(Violation, match=r"G1: .* is left without a message"):
        deleted(world, "default", message)


def test_the_only_message_of_a_run_without_a_row_is_not_deleted() -> None:
    world, message = at_work()
    world.aws.table.delete(run_key(*RUN))
    with pytest.raises(Violation, match="is left without a message: None"):
        deleted(world, "default", message)


@pytest.mark.parametrize("status", ["pending", "held", "dead_letter", "done", "skipped"])
def test_a_run_in_another_state_needs_no_message(status: str) -> None:
    world, message = at_work()
    becomes(world, status)
    deleted(world, "default", message)
    assert len(world.aws.queues["default"]) == 0


def test_a_parked_run_waits_for_the_reconciler() -> None:
    world, message = at_work()
    becomes(world, "deferred", parked=True)
    deleted(world, "default", message)


def test_a_copy_that_was_sent_is_as_good() -> None:
    world, message = at_work()
    becomes(world, "failed")
    world.aws.queues["default"].send([COPY])
    deleted(world, "default", message)


def test_a_copy_that_is_on_its_way_is_as_good() -> None:
    world, message = at_work()
    becomes(world, "failed")
    world.late = (Call("queue default", "send", ([COPY],)),)
    deleted(world, "default", message)


def test_a_copy_with_an_older_generation_is_not() -> None:
    world, message = at_work()
    becomes(world, "failed")
    world.aws.queues["default"].send([Outgoing(REFERENCE.encode())])
    with pytest.raises(Violation, match="is left without a message"):
        deleted(world, "default", message)


def test_the_message_that_claimed_the_run_sends_the_copy_that_is_missing() -> None:
    world, message = at_work()
    world.aws.queues["default"].send([COPY])
    (_, copy) = world.aws.queues["default"].snapshot()[1]
    becomes(world, "failed", generation=2, message_id=copy[0])
    deleted(world, "default", message)


def test_a_message_that_was_received_again_is_still_there() -> None:
    world, message = at_work()
    queue = world.aws.queues["default"]
    queue.show(message.id)
    queue.take(message.id, hidden_for=30)
    becomes(world, "failed")
    deleted(world, "default", message)
    assert len(queue) == 1


def test_a_run_whose_message_the_queue_lost_is_left_to_the_reconciler() -> None:
    world, message = at_work()
    becomes(world, "failed")
    world.observer.lost.add(RUN)
    deleted(world, "default", message)


def test_the_worker_s_own_message_ends_with_its_run() -> None:
    world, _ = at_work()
    finish(world, WORKER)
    assert (found := row(world)) is not None
    assert found["status"] == "done"


# -- moved to the DLQ


@pytest.mark.parametrize("status", ["processing", "failed", "deferred"])
def test_the_message_of_a_run_with_attempts_left_is_not_moved_to_the_dlq(status: str) -> None:
    world, _ = at_work()
    becomes(world, status)
    with pytest.raises(Violation, match=r"G1: .* has attempts left but no message"):
        moved_to_dlq(world, replace(REFERENCE, generation=1))


def test_a_replaced_message_may_be_moved_to_the_dlq() -> None:
    world, _ = at_work()
    becomes(world, "failed")
    moved_to_dlq(world, REFERENCE)


def test_the_message_of_a_dead_run_may_be_moved_to_the_dlq() -> None:
    world, _ = at_work()
    becomes(world, "dead_letter")
    moved_to_dlq(world, replace(REFERENCE, generation=1))


def test_the_message_of_a_troubled_run_may_be_moved_to_the_dlq() -> None:
    world, _ = at_work()
    becomes(world, "failed")
    world.observer.troubled.add(RUN)
    moved_to_dlq(world, replace(REFERENCE, generation=1))
