"""Several workers, killed workers, lost answers: one at a time, and done is done (G2, G3)."""

from collections.abc import Callable
from datetime import timedelta

import pytest

from tests.unit.support.world import VISIBILITY, World, handler, with_handlers
from webhook_inbox.adapters.memory import Fault
from webhook_inbox.domain.errors import Transient
from webhook_inbox.domain.manifest import Backoff
from webhook_inbox.domain.model import Status
from webhook_inbox.domain.ports import Outgoing
from webhook_inbox.handlers.context import Context
from webhook_inbox.handlers.event import Event
from webhook_inbox.queue.outcomes import RunOutcome

BOTH = pytest.mark.parametrize("fault", list(Fault))


def meanwhile(world: World, act: Callable[[], object]) -> None:
    """Does something while the first attempt's handler runs."""
    done: list[bool] = []

    def behave(event: Event, context: Context) -> None:
        if not done:
            done.append(True)
            act()

    world.behaviours["acme.fulfil"] = behave


# -- two at once


def test_while_one_works_another_message_is_dropped(world: World) -> None:
    world.deliver()
    world.deliver()
    first, second = world.taken(), world.taken()
    outcomes = []
    meanwhile(world, lambda: outcomes.append(world.process(second, by="worker-2").outcome))
    assert world.process(first).outcome is RunOutcome.DONE
    assert outcomes == [RunOutcome.DELETED]
    assert len(world.handled) == 1


def test_while_one_works_the_same_message_is_left(world: World) -> None:
    world.deliver()
    message = world.taken()
    outcomes = []
    meanwhile(world, lambda: outcomes.append(world.process(message, by="worker-2").outcome))
    assert world.process(message).outcome is RunOutcome.DONE
    assert outcomes == [RunOutcome.IN_FLIGHT]


def test_a_worker_that_lost_its_lease_settles_nothing(world: World) -> None:
    world.deliver()
    message = world.taken()

    def overtake() -> None:
        world.clock.advance(seconds=71)
        assert world.process(message, by="worker-2").outcome is RunOutcome.DONE

    meanwhile(world, overtake)
    assert world.process(message).outcome is RunOutcome.SUPERSEDED
    run = world.run()
    assert (run.status, run.attempts[-1].worker, run.attempt_count) == (Status.DONE, "worker-2", 2)


def test_a_lease_is_not_taken_over_before_it_is_over_on_every_clock(world: World) -> None:
    world.deliver()
    message = world.taken()
    outcomes = []

    def try_early() -> None:
        world.clock.advance(seconds=69)
        outcomes.append(world.process(message, by="worker-2").outcome)

    meanwhile(world, try_early)
    world.process(message)
    assert outcomes == [RunOutcome.IN_FLIGHT]


def test_a_replay_during_an_attempt_is_refused_and_the_attempt_settles(world: World) -> None:
    world.deliver()
    reports = []
    meanwhile(world, lambda: reports.append(world.replay(event_ids=["evt-1"])))
    assert world.work() == [RunOutcome.DONE]
    assert reports[0].counts == {"in_use": 1}


def test_a_worker_whose_run_was_replayed_after_its_lease_settles_nothing(world: World) -> None:
    world.deliver()
    message = world.taken()

    def replayed() -> None:
        world.clock.advance(seconds=71)
        assert world.replay(event_ids=["evt-1"]).counts == {"replayed": 1}

    meanwhile(world, replayed)
    assert world.process(message).outcome is RunOutcome.SUPERSEDED
    assert world.run().status is Status.PENDING
    assert RunOutcome.DONE in world.work()


# -- killed


def test_a_killed_workers_run_is_attempted_again_when_its_message_returns(world: World) -> None:
    world.deliver()
    world.claim_and_die(world.taken())
    assert world.run().status is Status.PROCESSING
    world.clock.advance(seconds=VISIBILITY)
    assert world.work() == [RunOutcome.DONE]
    assert world.run().attempt_count == 2


def test_the_lost_attempt_shows_in_the_history(world: World) -> None:
    world.deliver()
    world.claim_and_die(world.taken())
    world.clock.advance(seconds=VISIBILITY)
    world.work()
    assert [(a.number, a.outcome) for a in world.run().attempts] == [(1, "lost"), (2, "done")]


def test_a_handler_that_kills_its_process_every_time_ends_as_a_dead_letter(world: World) -> None:
    world.deliver()
    for _ in range(3):
        world.claim_and_die(world.taken())
        world.clock.advance(seconds=VISIBILITY)
    outcomes = world.work()
    assert outcomes[0] is RunOutcome.DEAD
    run = world.run()
    assert (run.status, run.attempt_count) == (Status.DEAD_LETTER, 3)
    assert run.last_error == "exhausted: its worker stopped silently"
    assert len(world.dlqs["default"]) == 1


def test_all_its_lost_attempts_are_shown(world: World) -> None:
    world.deliver()
    for _ in range(3):
        world.claim_and_die(world.taken())
        world.clock.advance(seconds=VISIBILITY)
    world.work()
    outcomes = [(attempt.number, attempt.outcome) for attempt in world.run().attempts]
    assert outcomes == [(1, "lost"), (2, "lost"), (3, "given up")]


def test_what_killed_its_workers_can_be_replayed(world: World) -> None:
    world.deliver()
    for _ in range(3):
        world.claim_and_die(world.taken())
        world.clock.advance(seconds=VISIBILITY)
    world.work()
    world.replay()
    assert world.work() == [RunOutcome.DONE]


def test_a_worker_killed_between_its_settlement_and_the_deletion_did_all_it_had_to(
    world: World,
) -> None:
    world.deliver()
    world.process(world.taken())
    world.clock.advance(seconds=VISIBILITY)
    assert world.work() == [RunOutcome.DELETED]
    assert len(world.handled) == 1


def test_a_worker_killed_before_it_claimed_spent_no_attempt(world: World) -> None:
    world.deliver()
    world.taken()
    world.clock.advance(seconds=VISIBILITY)
    world.work()
    assert world.run().attempt_count == 1


# -- calls that fail


@BOTH
def test_a_claim_that_fails_heals(world: World, fault: Fault) -> None:
    world.deliver()
    world.plan.fail("UpdateItem", fault)
    assert world.work() == [RunOutcome.UNAVAILABLE]
    assert world.handled == []
    world.clock.advance(seconds=VISIBILITY)
    assert world.work() == [RunOutcome.DONE]


@BOTH
def test_a_settlement_that_fails_never_undoes_a_done_run(world: World, fault: Fault) -> None:
    world.deliver()
    world.plan.fail("UpdateItem", fault, skip=1)
    assert world.work() == [RunOutcome.UNAVAILABLE]
    world.clock.advance(seconds=VISIBILITY)
    again = world.work()
    assert again == [RunOutcome.DELETED if fault is Fault.AFTER else RunOutcome.DONE]
    assert world.run().status is Status.DONE


@BOTH
def test_a_failure_whose_settlement_fails_heals(world: World, fault: Fault) -> None:
    world.script("acme.fulfil", Transient("down"))
    world.deliver()
    world.plan.fail("UpdateItem", fault, skip=1)
    world.work()
    world.run_until_quiet()
    assert world.run().status is Status.DONE


@BOTH
def test_reading_the_event_may_fail(world: World, fault: Fault) -> None:
    world.deliver()
    world.plan.fail("GetItem", fault)
    assert world.work() == [RunOutcome.UNAVAILABLE]
    world.clock.advance(seconds=VISIBILITY)
    assert world.work() == [RunOutcome.DONE]
    assert world.run().attempt_count == 1


@BOTH
def test_giving_up_may_fail(world: World, fault: Fault) -> None:
    world.deliver()
    for _ in range(3):
        world.claim_and_die(world.taken())
        world.clock.advance(seconds=VISIBILITY)
    world.plan.fail("UpdateItem", fault, skip=1)
    assert world.work() == [RunOutcome.UNAVAILABLE]
    world.clock.advance(seconds=8 * VISIBILITY)
    world.work()
    assert world.run().status is Status.DEAD_LETTER
    assert len(world.dlqs["default"]) == 1


def test_a_table_that_is_down_for_an_hour_costs_no_attempt(world: World) -> None:
    world.deliver()
    world.plan.fail("GetItem", times=4)
    for doublings in range(4):
        assert world.work() == [RunOutcome.UNAVAILABLE]
        world.clock.advance(seconds=VISIBILITY * 2**doublings)
    assert world.work() == [RunOutcome.DEFERRED, RunOutcome.DONE]
    assert world.run().attempt_count == 1


# -- many messages


@pytest.mark.parametrize("copies", [2, 10])
def test_any_number_of_messages_is_one_run(world: World, copies: int) -> None:
    world.deliver()
    (body,) = world.queues["default"].bodies
    world.queues["default"].send([Outgoing(body)] * (copies - 1))
    outcomes = world.work()
    assert outcomes == [RunOutcome.DONE] + [RunOutcome.DELETED] * (copies - 1)
    assert len(world.handled) == 1


def test_a_done_run_is_not_attempted_by_any_later_message(world: World) -> None:
    world.deliver()
    (body,) = world.queues["default"].bodies
    world.work()
    for hours in (0, 1, 24, 24 * 30):
        world.clock.advance(hours=hours)
        world.queues["default"].send([Outgoing(body)])
        assert world.work() == [RunOutcome.DELETED]
    assert len(world.handled) == 1


def test_workers_of_two_lanes_do_not_wait_for_each_other() -> None:
    slow = handler("acme.slow", lane="slow", backoff=Backoff(base=1, cap=1))
    world = World(with_handlers(slow, handler("acme.quick")))
    world.behaviours["acme.slow"] = lambda event, ctx: world.clock.advance(seconds=40)
    world.deliver()
    world.work_once("default")
    assert world.run(handler="acme.quick").status is Status.DONE
    assert world.row(handler="acme.slow") is None
    world.work_once("slow")
    assert world.run(handler="acme.slow").status is Status.DONE


def test_the_copy_of_a_run_stays_in_its_lane() -> None:
    world = World(with_handlers(handler("acme.slow", lane="slow", backoff=Backoff(cap=0))))
    world.script("acme.slow", Transient("down", retry_after=timedelta(minutes=5)))
    world.deliver()
    world.work()
    assert world.messages("default") == []
    assert [m["generation"] for m in world.messages("slow")] == [1]
