"""Deferred: a run waits for something outside it, and spends no attempt."""

from datetime import UTC, datetime, timedelta, timezone

import pytest

from tests.unit.support.world import World, handler, with_handlers
from webhook_inbox.adapters.memory import Fault
from webhook_inbox.domain.errors import Deferred, Permanent, Transient
from webhook_inbox.domain.model import Status
from webhook_inbox.queue.outcomes import RunOutcome


def defer(world: World, **wait: float) -> None:
    """Lets the first attempt wait so long from now."""
    world.script("acme.fulfil", Deferred(world.now + timedelta(**wait), "the breaker is open"))
    world.deliver()
    assert world.work() == [RunOutcome.DEFERRED]


def test_a_deferral_spends_no_attempt(world: World) -> None:
    defer(world, minutes=5)
    run = world.run()
    assert (run.status, run.attempt_count, run.attempts_in_round) == (Status.DEFERRED, 0, 0)
    assert run.last_error == "the breaker is open"
    assert run.attempts == ()


@pytest.mark.parametrize("seconds", [1, 60, 900])
def test_up_to_fifteen_minutes_a_copy_carries_it(world: World, seconds: int) -> None:
    defer(world, seconds=seconds)
    assert world.generations() == [1]
    world.clock.advance(seconds=seconds + 1)
    assert world.work() == [RunOutcome.DONE]
    assert world.run().attempt_count == 1


@pytest.mark.parametrize("minutes", [16, 120])
def test_longer_it_is_parked_without_a_message(world: World, minutes: int) -> None:
    defer(world, minutes=minutes)
    assert world.messages() == []
    assert world.run().parked
    world.pass_minutes(minutes + 1)
    assert world.run().status is Status.DONE


def test_it_may_defer_more_often_than_it_may_fail(world: World) -> None:
    for _ in range(20):
        world.script("acme.fulfil", Deferred(world.now + timedelta(minutes=2)))
        world.deliver()
        world.work()
        world.clock.advance(minutes=2, seconds=1)
    world.work()
    assert world.run().status is Status.DONE
    assert world.run().attempt_count == 1


def test_deferrals_between_failures_leave_the_count_of_failures_alone(world: World) -> None:
    soon = Deferred(datetime(2026, 1, 1, 0, 1, tzinfo=UTC))
    world.script("acme.fulfil", Transient("a"), soon, Transient("b"), soon)
    world.deliver()
    world.run_until_quiet()
    run = world.run()
    assert (run.status, run.attempt_count) == (Status.DONE, 3)
    assert [attempt.number for attempt in run.attempts] == [1, 2, 3]


@pytest.mark.parametrize("minutes", [-5, 0])
def test_a_time_that_has_passed_is_soon_but_never_at_once(world: World, minutes: int) -> None:
    defer(world, minutes=minutes)
    assert world.work() == []
    world.clock.advance(minutes=1)
    assert world.work() == [RunOutcome.DONE]


def test_a_time_in_another_zone_is_the_same_instant(world: World) -> None:
    east = timezone(timedelta(hours=9))
    until = (world.now + timedelta(minutes=5)).astimezone(east)
    world.script("acme.fulfil", Deferred(until))
    world.deliver()
    world.work()
    assert world.run().next_attempt_at == until


def test_past_its_maximum_age_it_is_dead(world: World) -> None:
    world.deploy(with_handlers(handler("acme.fulfil", max_age=3600)))
    world.script("acme.fulfil", Deferred(world.now + timedelta(minutes=59)))
    world.deliver()
    world.work()
    world.script("acme.fulfil", Deferred(world.now + timedelta(minutes=61)))
    world.run_until_quiet()
    run = world.run()
    assert run.status is Status.DEAD_LETTER
    assert run.last_error.startswith("expired: deferred")


@pytest.mark.parametrize(
    "until", [datetime.max.replace(tzinfo=UTC), datetime(2100, 1, 1, tzinfo=UTC)]
)
def test_a_wait_for_ever_is_a_death_at_once(world: World, until: datetime) -> None:
    world.script("acme.fulfil", Deferred(until))
    world.deliver()
    world.work()
    assert world.run().status is Status.DEAD_LETTER


def test_a_naive_time_is_the_handlers_mistake_and_says_so(world: World) -> None:
    def act(event: object, context: object) -> None:
        raise Deferred(datetime(2026, 1, 1))  # noqa: DTZ001 - the mistake itself

    world.behaviours["acme.fulfil"] = act
    world.deliver()
    world.work()
    assert "needs an aware time" in world.run().last_error


def test_a_deferral_that_cannot_be_printed_is_a_deferral_all_the_same(world: World) -> None:
    class Silent(Deferred):
        def __str__(self) -> str:
            raise RuntimeError

    world.script("acme.fulfil", Silent(world.now + timedelta(minutes=2)))
    world.deliver()
    assert world.work() == [RunOutcome.DEFERRED]


@pytest.mark.parametrize("fault", list(Fault))
def test_a_copy_that_could_not_be_sent_is_sent_by_the_old_message(
    world: World, fault: Fault
) -> None:
    world.script("acme.fulfil", Deferred(world.now + timedelta(minutes=10)))
    world.deliver()
    world.plan.fail("SendMessageBatch", fault)
    assert world.work() == [RunOutcome.UNAVAILABLE]
    world.clock.advance(minutes=6)
    assert world.work() == [RunOutcome.DELETED]
    world.run_until_quiet()
    assert world.run().status is Status.DONE
    assert world.run().attempt_count == 1


@pytest.mark.parametrize("fault", list(Fault))
@pytest.mark.parametrize("minutes", [5, 60])
def test_a_deferral_whose_settlement_failed_heals(world: World, fault: Fault, minutes: int) -> None:
    world.script("acme.fulfil", Deferred(world.now + timedelta(minutes=minutes)))
    world.deliver()
    world.plan.fail("UpdateItem", fault, skip=1)
    assert world.work() == [RunOutcome.UNAVAILABLE]
    world.run_until_quiet()
    assert world.run().status is Status.DONE


def test_a_permanent_failure_after_a_deferral_is_its_first_attempt(world: World) -> None:
    soon = Deferred(world.now + timedelta(minutes=2))
    world.script("acme.fulfil", soon, Permanent("no"))
    world.deliver()
    world.run_until_quiet()
    run = world.run()
    assert run.status is Status.DEAD_LETTER
    assert [attempt.number for attempt in run.attempts] == [1]
