"""How a standard lane implements a wait: a delayed copy, or the ledger only."""

import math
from datetime import timedelta

import pytest

from tests.unit.support.world import VISIBILITY, World, handler, with_handlers
from webhook_inbox.adapters.memory import Fault
from webhook_inbox.domain.errors import Transient
from webhook_inbox.domain.manifest import Backoff
from webhook_inbox.domain.model import Status
from webhook_inbox.domain.ports import Outgoing
from webhook_inbox.queue.outcomes import RunOutcome, RunResult

SECONDS = timedelta(seconds=1)


def fail_once(world: World, seconds: float) -> None:
    """Lets the first attempt fail and ask for a wait; the backoff asks for none."""
    quick = handler("acme.fulfil", "paid", max_attempts=3, backoff=Backoff(base=0, factor=1))
    world.deploy(with_handlers(quick))
    world.script("acme.fulfil", Transient("down", retry_after=seconds * SECONDS))


def failed(world: World, seconds: float) -> RunResult:
    fail_once(world, seconds)
    world.deliver()
    result = world.work_once()
    assert result is not None
    return result


# -- a copy


@pytest.mark.parametrize("seconds", [0, 0.5, 1, 30, 60, 60.5, 300, 900])
def test_a_wait_of_up_to_fifteen_minutes_is_a_delayed_copy(world: World, seconds: float) -> None:
    result = failed(world, seconds)
    assert (result.outcome, result.keeps_message) == (RunOutcome.FAILED, False)
    assert world.generations() == [1]
    assert world.run().generation == 1
    if seconds:
        world.clock.advance(seconds=math.ceil(seconds) - 0.1)
        assert world.work() == []
    world.clock.advance(seconds=0.1)
    assert world.work() == [RunOutcome.DONE]


def test_a_duplicate_of_the_replaced_message_is_dropped(world: World) -> None:
    fail_once(world, 50)
    world.deliver()
    duplicate = world_message(world)
    world.work()
    world.queues["default"].send(duplicate)
    assert world.work() == [RunOutcome.DELETED]
    assert world.run().attempt_count == 1
    world.clock.advance(seconds=50)
    world.queues["default"].send(duplicate)
    assert sorted(world.work()) == [RunOutcome.DELETED, RunOutcome.DONE]


def test_a_message_that_an_earlier_version_hid_is_attempted_when_it_is_due(world: World) -> None:
    fail_once(world, 30)
    world.deliver()
    message = world.taken()
    world.process(message)
    world.drop_messages()
    world.alter(generation=0, status="failed")
    world.queues["default"].send([Outgoing(message.body)])
    world.queues["default"].hide(world.taken().receipt, 30)
    world.clock.advance(seconds=30)
    assert world.work() == [RunOutcome.DONE]


def test_a_copy_has_its_own_receives(world: World) -> None:
    failed(world, 300)
    world.clock.advance(seconds=300)
    assert world.taken().receive_count == 1


def test_the_message_that_a_copy_replaced_is_dropped_when_it_comes_again(world: World) -> None:
    fail_once(world, 300)
    world.deliver()
    old = world.taken()
    world.process(old)
    world.clock.advance(seconds=VISIBILITY)
    assert sorted(world.work()) == [RunOutcome.DELETED, RunOutcome.DONE]
    assert len(world.handled) == 2


@pytest.mark.parametrize("fault", list(Fault))
def test_a_crash_between_settle_and_copy_is_healed_by_the_old_message(
    world: World, fault: Fault
) -> None:
    fail_once(world, 500)
    world.deliver()
    world.plan.fail("SendMessageBatch", fault)
    result = world.work_once()
    assert result is not None
    assert result.outcome is RunOutcome.UNAVAILABLE
    world.clock.advance(seconds=VISIBILITY)

    assert world.work() == [RunOutcome.DELETED]
    assert set(world.generations()) == {1}
    world.clock.advance(seconds=500)
    assert RunOutcome.DONE in world.work()
    assert len(world.handled) == 2


def test_the_copy_that_is_sent_again_waits_no_longer_than_the_first_would(world: World) -> None:
    fail_once(world, 500)
    world.deliver()
    world.plan.fail("SendMessageBatch")
    world.work()
    world.clock.advance(seconds=VISIBILITY)
    world.work()
    world.clock.advance(seconds=140)
    assert world.work() == [RunOutcome.DONE]


def test_a_copy_whose_time_has_passed_meanwhile_is_sent_at_once(world: World) -> None:
    fail_once(world, 100)
    world.deliver()
    world.plan.fail("SendMessageBatch")
    world.work()
    world.clock.advance(seconds=VISIBILITY)
    assert world.work() == [RunOutcome.DELETED, RunOutcome.DONE]


def test_the_old_message_stays_until_the_copy_is_sent(world: World) -> None:
    fail_once(world, 500)
    world.deliver()
    world.plan.fail("SendMessageBatch", times=2)
    world.work()
    world.clock.advance(seconds=VISIBILITY)
    assert world.work() == [RunOutcome.UNAVAILABLE]
    world.clock.advance(minutes=12)
    assert RunOutcome.DELETED in world.work()


def test_two_copies_of_one_wait_make_one_attempt(world: World) -> None:
    failed(world, 300)
    (copy,) = world.queues["default"].bodies
    world.queues["default"].send([Outgoing(copy, 300)])
    world.clock.advance(seconds=300)
    assert sorted(world.work()) == [RunOutcome.DELETED, RunOutcome.DONE]
    assert len(world.handled) == 2


# -- parked


@pytest.mark.parametrize("seconds", [901, 3600, 86_400])
def test_a_long_wait_has_no_message(world: World, seconds: int) -> None:
    assert failed(world, seconds).outcome is RunOutcome.FAILED
    assert world.messages() == []
    run = world.run()
    assert (run.parked, run.generation, run.status) == (True, 1, Status.FAILED)


def test_a_parked_run_is_sent_in_the_minute_it_is_due(world: World) -> None:
    failed(world, 1800)
    world.pass_minutes(29)
    assert world.messages() == []
    world.pass_minutes(2)
    assert world.run().status is Status.DONE


def test_the_message_of_a_parked_run_is_dropped(world: World) -> None:
    fail_once(world, 1800)
    world.deliver()
    world.process(world.taken())
    world.clock.advance(seconds=VISIBILITY)
    assert world.work() == [RunOutcome.DELETED]
    assert world.messages() == []


# -- how long


def test_a_downstream_is_believed_for_a_day_at_most(world: World) -> None:
    failed(world, 30 * 86_400)
    due = world.run().next_attempt_at
    assert due is not None
    assert due <= world.now + timedelta(days=1)


def test_the_backoff_is_not_shortened_by_a_small_retry_after() -> None:
    slow = handler("acme.fulfil", "paid", backoff=Backoff(base=3600, factor=1))
    world = World(with_handlers(slow), seed=3)
    world.script("acme.fulfil", Transient("down", retry_after=SECONDS))
    world.deliver()
    world.work()
    due = world.run().next_attempt_at
    assert due is not None
    assert due > world.now + timedelta(minutes=1)


@pytest.mark.parametrize("odd", [30, "soon", -5 * SECONDS, timedelta(0)])
def test_an_odd_retry_after_leaves_the_backoff(world: World, odd: object) -> None:
    world.script("acme.fulfil", Transient("down", retry_after=odd))  # type: ignore[arg-type]
    world.deliver()
    world.work()
    assert world.run().status is Status.FAILED
    world.run_until_quiet()
    assert world.run().status is Status.DONE


def test_a_transient_error_that_forgot_its_base_class_is_transient_all_the_same(
    world: World,
) -> None:
    class Hasty(Transient):
        def __init__(self) -> None:
            Exception.__init__(self, "in a hurry")

    world.script("acme.fulfil", Hasty())
    world.deliver()
    world.work()
    assert world.run().status is Status.FAILED


def world_message(world: World) -> list[Outgoing]:
    (body,) = world.queues["default"].bodies
    return [Outgoing(body)]
