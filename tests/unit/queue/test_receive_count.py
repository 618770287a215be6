"""A small receive count covers crashes and burned receives, and a death costs no more than it."""

from datetime import timedelta

import pytest

from tests.unit.support.world import MAX_RECEIVES, World, handler, with_handlers
from webhook_inbox.adapters.memory import Fault
from webhook_inbox.domain.errors import Permanent, Transient
from webhook_inbox.domain.manifest import Backoff
from webhook_inbox.domain.model import Status
from webhook_inbox.domain.timestamps import from_ms
from webhook_inbox.queue.outcomes import RunOutcome, RunResult

PATIENT = handler(
    "acme.fulfil", "paid", max_attempts=100, max_age=86_400, backoff=Backoff(base=1, factor=1)
)


@pytest.fixture
def patient() -> World:
    return World(with_handlers(PATIENT))


def receive_again(world: World, times: int) -> None:
    """Burns receives, as a throttled function does."""
    for _ in range(times):
        world.queues["default"].hide(world.taken().receipt, 0)


def calls_of_next_receive(world: World) -> tuple[RunOutcome, list[str]]:
    message = world.taken()
    world.plan.operations()
    result: RunResult = world.process(message)
    return result.outcome, world.plan.operations()


# -- a death


def test_a_death_costs_as_many_receives_as_the_queue_allows(patient: World) -> None:
    patient.fails("acme.fulfil", Permanent("no"))
    patient.deliver()
    assert len(patient.work()) == MAX_RECEIVES == 5
    assert len(patient.dlqs["default"]) == 1


def test_the_death_after_a_hundred_attempts_costs_no_more(patient: World) -> None:
    patient.fails("acme.fulfil", Transient("down"))
    patient.deliver()
    seen = []
    while patient.queues["default"].next_visible_at() is not None:
        seen += patient.work()
        patient.clock.advance(seconds=1)
    assert patient.run().attempt_count == 100
    assert seen.count(RunOutcome.FAILED) == 99
    assert seen[99:] == [RunOutcome.DEAD, *[RunOutcome.TO_DLQ] * (MAX_RECEIVES - 1)]
    assert len(patient.dlqs["default"]) == 1


def test_the_message_of_a_dead_run_costs_one_read_and_no_write(world: World) -> None:
    world.fails("acme.fulfil", Permanent("no"))
    world.deliver()
    world.work_once()
    for _ in range(MAX_RECEIVES - 1):
        outcome, calls = calls_of_next_receive(world)
        assert outcome is RunOutcome.TO_DLQ
        assert calls == ["GetItem", "ChangeMessageVisibility"]


def test_a_first_receive_reads_the_event_and_the_pause_but_no_run(world: World) -> None:
    world.deliver()
    _, calls = calls_of_next_receive(world)
    assert calls == ["GetItem", "GetItem", "UpdateItem", "UpdateItem"]


def test_a_redriven_message_that_is_received_twice_begins_a_new_round(world: World) -> None:
    world.dead()
    world.work()
    world.clock.advance(minutes=1)
    world.redrive()
    receive_again(world, 1)
    assert world.work() == [RunOutcome.DONE]


def test_a_replaced_message_of_a_dead_run_is_dropped(world: World) -> None:
    world.deliver()
    message = world.taken()
    world.script("acme.fulfil", Transient("down"), Permanent("no"))
    world.process(message)
    world.clock.advance(minutes=5)
    world.work()
    assert world.run().status is Status.DEAD_LETTER
    world.clock.advance(minutes=1)
    assert world.work() == [RunOutcome.DELETED]


# -- the last receive


def test_the_last_receive_makes_no_attempt_but_sends_a_copy(world: World) -> None:
    world.deliver()
    receive_again(world, MAX_RECEIVES - 1)
    result = world.work_once()
    assert result is not None
    assert (result.outcome, result.keeps_message) == (RunOutcome.DEFERRED, False)
    assert "received 5 times" in result.detail
    assert world.handled == []
    assert world.generations() == [1]
    assert world.work() == [RunOutcome.DONE]
    assert world.run().attempt_count == 1
    assert len(world.dlqs["default"]) == 0


@pytest.mark.parametrize("attempts", [3, 12])
def test_a_run_that_kills_every_worker_gets_all_of_its_attempts(attempts: int) -> None:
    world = World(with_handlers(handler("acme.fulfil", "paid", max_attempts=attempts)))
    world.deliver()
    for _ in range(2 * attempts):
        message = world.taken()
        if len(world.handled) == attempts:
            break
        if message.receive_count == MAX_RECEIVES:
            assert not world.process(message).keeps_message
            world.queues["default"].delete(message.receipt)
        else:
            world.claim_and_die(message)
            world.clock.advance(minutes=6)
    assert len(world.dlqs["default"]) == 0
    assert world.process(message).outcome is RunOutcome.DEAD
    world.work()
    run = world.run()
    assert (run.status, run.attempt_count) == (Status.DEAD_LETTER, attempts)
    assert len(world.dlqs["default"]) == 1


def test_an_exhausted_run_dies_at_the_last_receive(world: World) -> None:
    world.deliver()
    for _ in range(3):
        world.claim_and_die(world.taken())
        world.clock.advance(minutes=6)
    receive_again(world, 1)
    assert world.work() == [RunOutcome.DEAD]
    assert len(world.dlqs["default"]) == 1


@pytest.mark.parametrize("fault", list(Fault))
def test_a_run_whose_last_message_sent_no_copy_is_sent_by_the_reconciler(
    world: World, fault: Fault
) -> None:
    world.deliver()
    receive_again(world, MAX_RECEIVES - 1)
    world.plan.fail("SendMessageBatch", fault)
    result = world.work_once()
    assert result is not None
    assert result.outcome is RunOutcome.UNAVAILABLE
    run = world.run()
    assert (run.status, run.generation, run.attempt_count) == (Status.DEFERRED, 1, 0)
    world.pass_minutes(180)
    assert len(world.handled) == 1
    assert world.run().status is Status.DONE
    assert len(world.dlqs["default"]) == 0


def test_a_copy_at_the_last_receive_keeps_the_reservations(world: World) -> None:
    world.script("acme.fulfil", Transient("down", retry_after=timedelta(seconds=1)))
    world.deliver()
    world.work_once()
    world.clock.advance(minutes=2)
    world.alter(reservations={"crm": 5})
    receive_again(world, MAX_RECEIVES - 1)
    world.work_once()
    assert world.run().reservations == {"crm": 5}


# -- an outage


def test_an_outage_hides_a_message_longer_at_every_receive(world: World) -> None:
    world.deliver()
    world.plan.fail("GetItem", times=100)
    waits = []
    for _ in range(MAX_RECEIVES):
        began = world.now
        assert world.work() == [RunOutcome.UNAVAILABLE]
        visible_at = world.queues["default"].next_visible_at()
        assert visible_at is not None
        world.clock.advance(seconds=(from_ms(visible_at) - began).total_seconds())
        waits.append((world.now - began) / timedelta(minutes=1))
    assert waits == [6, 12, 24, 48, 96]
    assert world.work() == []
    assert len(world.dlqs["default"]) == 1


def test_an_outage_that_outlasts_the_receives_loses_no_run(world: World) -> None:
    world.deliver()
    world.plan.fail("GetItem", times=10_000)
    world.plan.fail("Query", times=10_000)
    world.clock.advance(seconds=1)
    while not len(world.dlqs["default"]):
        world.work()
        world.clock.advance(minutes=6)
    assert world.row() is None
    world.plan.heal()
    world.pass_minutes(150)
    assert world.run().status is Status.DONE
    assert len(world.handled) == 1
    assert len(world.dlqs["default"]) == 0


def test_an_outage_after_a_lost_attempt_loses_no_run(world: World) -> None:
    world.deliver()
    world.claim_and_die(world.taken())
    world.plan.fail("GetItem", times=10_000)
    while not len(world.dlqs["default"]):
        world.clock.advance(minutes=6)
        world.work()
    world.plan.heal()
    assert world.run().status is Status.PROCESSING
    world.pass_minutes(150)
    assert world.run().status is Status.DONE
    assert len(world.dlqs["default"]) == 0
