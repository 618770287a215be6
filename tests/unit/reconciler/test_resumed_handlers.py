"""Runs of a paused handler: they wait, cheaply, and go on soon after it was resumed."""

from datetime import timedelta

import pytest

from tests.unit.support.people import person
from tests.unit.support.world import World, handler, with_handlers
from webhook_inbox.domain.errors import Deferred, Transient
from webhook_inbox.domain.model import Status
from webhook_inbox.ledger.pauses import RECHECK, RESUMING, RESUMPTION, PauseRequest, pause, resume
from webhook_inbox.ledger.schema import DUE_SHARDS
from webhook_inbox.queue.outcomes import RunOutcome
from webhook_inbox.reconciler.due_index import DRAIN
from webhook_inbox.reconciler.report import Action

NAME = "acme.fulfil"


def say(world: World, *, paused: bool, name: str = NAME) -> None:
    """Pauses or resumes a handler, and lets the workers hear of it."""
    wish = PauseRequest(name, person("kim"), "the CRM moves", world.now)
    if paused:
        pause(world.table, world.randomness, wish)
    else:
        resume(world.table, world.randomness, wish)
    world.clock.advance(seconds=5)


@pytest.fixture
def paused(world: World) -> World:
    """An inbox with a paused handler and a run of it that waits."""
    say(world, paused=True)
    world.deliver()
    world.work()
    return world


# -- while it is paused


def test_a_run_of_a_paused_handler_waits_and_spends_no_attempt(paused: World) -> None:
    run = paused.run()
    assert (run.status, run.parked, run.waits_for) == (Status.DEFERRED, True, RESUMPTION)
    assert (run.attempt_count, run.attempts_in_round) == (0, 0)
    assert "the CRM moves" in run.last_error
    assert paused.messages() == []
    assert paused.handled == []


def test_a_handler_that_is_not_paused_goes_on(world: World) -> None:
    world.deploy(with_handlers(handler(NAME), handler("acme.notify")))
    say(world, paused=True)
    world.deliver()
    world.work()
    assert [name for name, *_ in world.handled] == ["acme.notify"]


def test_it_is_moved_on_hour_by_hour_without_a_message(paused: World) -> None:
    paused.clock.advance(seconds=RECHECK.total_seconds())
    report = paused.reconcile()
    assert (report.count(Action.POSTPONED), report.count(Action.RESUMED)) == (1, 0)
    assert paused.messages() == []
    run = paused.run()
    assert (run.status, run.waits_for) == (Status.DEFERRED, RESUMPTION)
    assert run.next_attempt_at is not None
    assert run.next_attempt_at - paused.now == RECHECK


def test_moving_it_on_costs_one_write(paused: World) -> None:
    paused.clock.advance(seconds=RECHECK.total_seconds())
    paused.plan.operations()
    paused.reconcile()
    calls = paused.plan.operations()
    assert calls.count("UpdateItem") == 1 + 2  # the cursors, and the time of the sweep
    assert "SendMessageBatch" not in calls


def test_it_is_not_touched_before_its_hour_is_over(paused: World) -> None:
    before = paused.row()
    paused.clock.advance(minutes=30)
    paused.reconcile()
    assert paused.row() == before


def test_a_run_that_waits_for_something_else_waits_for_the_resumption_once_that_is_over(
    world: World,
) -> None:
    world.script(NAME, Deferred(world.now + timedelta(hours=3), "the CRM sleeps"))
    world.deliver()
    world.work()
    say(world, paused=True)
    world.clock.advance(hours=3)
    assert world.reconcile().count(Action.RESUMED) == 0
    assert world.run().waits_for == RESUMPTION


def test_a_run_that_failed_waits_when_it_is_due(world: World) -> None:
    world.script(NAME, Transient("down", retry_after=timedelta(minutes=5)))
    world.deliver()
    world.work()
    say(world, paused=True)
    world.clock.advance(minutes=6)
    world.work()
    run = world.run()
    assert (run.status, run.waits_for, run.attempt_count) == (Status.DEFERRED, RESUMPTION, 1)


def test_a_replayed_run_waits_too(world: World) -> None:
    world.dead()
    say(world, paused=True)
    world.replay()
    world.work()
    assert world.run().waits_for == RESUMPTION


def test_a_pause_of_a_month_expires_no_run(world: World) -> None:
    say(world, paused=True)
    world.deliver()
    world.work()
    for _ in range(27):
        world.clock.advance(days=1)
        world.reconcile()
    assert world.run().status is Status.DEFERRED
    say(world, paused=False)
    world.pass_minutes(2)
    assert world.run().status is Status.DONE


def test_a_week_before_its_events_end_it_is_alarmed(paused: World) -> None:
    paused.clock.advance(days=28, seconds=61)
    assert paused.reconcile().count(Action.LAST_CALL) == 1
    assert paused.run().status is Status.DEFERRED


def test_where_the_controls_cannot_be_read_its_run_comes_back_parked(paused: World) -> None:
    paused.clock.advance(seconds=RECHECK.total_seconds() + 60)
    paused.plan.fail("Query")
    report = paused.reconcile()
    assert report.count(Action.FAILED) == 1
    assert report.count(Action.RESUMED) == 1
    paused.work()
    assert paused.run().waits_for == RESUMPTION
    assert paused.handled == []


# -- once it is resumed


def test_it_goes_on_with_the_reconcilers_next_pass(paused: World) -> None:
    say(paused, paused=False)
    paused.clock.advance(minutes=1)
    assert paused.reconcile().count(Action.RESUMED) == 1
    assert paused.work() == [RunOutcome.DONE]
    assert paused.run().status is Status.DONE


def test_a_run_parked_after_the_resumption_goes_on_as_well(paused: World) -> None:
    """A worker goes for five seconds by what it has heard."""
    paused.deliver("evt-2")
    resume(paused.table, paused.randomness, PauseRequest(NAME, person("kim"), "moved", paused.now))
    paused.work()
    assert paused.run("evt-2").waits_for == RESUMPTION
    paused.clock.advance(minutes=1)
    assert paused.reconcile().count(Action.RESUMED) == 2
    assert paused.work() == [RunOutcome.DONE, RunOutcome.DONE]


def test_runs_of_other_handlers_are_left_alone(world: World) -> None:
    world.deploy(with_handlers(handler(NAME), handler("acme.notify")))
    say(world, paused=True)
    say(world, paused=True, name="acme.notify")
    world.deliver()
    world.work()
    say(world, paused=False)
    world.clock.advance(minutes=1)
    assert world.reconcile().count(Action.RESUMED) == 1
    world.work()
    assert [name for name, *_ in world.handled] == [NAME]
    assert world.run(handler="acme.notify").waits_for == RESUMPTION


def test_a_run_that_waits_for_something_else_keeps_waiting(world: World) -> None:
    world.script(NAME, Deferred(world.now + timedelta(minutes=40), "the CRM sleeps"))
    world.deliver()
    world.work()
    say(world, paused=True)
    say(world, paused=False)
    world.clock.advance(minutes=1)
    assert world.reconcile().count(Action.RESUMED) == 0
    assert world.run().status is Status.DEFERRED


def test_a_handler_paused_again_before_the_next_pass_keeps_its_runs_waiting(paused: World) -> None:
    say(paused, paused=False)
    say(paused, paused=True)
    paused.clock.advance(minutes=1)
    assert paused.reconcile().count(Action.RESUMED) == 0
    assert paused.run().waits_for == RESUMPTION


def test_long_after_a_resumption_nothing_is_searched(paused: World) -> None:
    say(paused, paused=False)
    paused.clock.advance(seconds=RESUMING.total_seconds() + 1)
    paused.pass_minutes(1)
    paused.plan.operations()
    paused.clock.advance(minutes=1)
    paused.reconcile()
    quiet = paused.plan.operations().count("Query")
    say(paused, paused=True)
    say(paused, paused=False)
    paused.reconcile()
    # One more look at the index, shard by shard, while runs may wait.
    assert paused.plan.operations().count("Query") == quiet + DUE_SHARDS


def test_so_many_are_woken_a_minute_and_no_more(world: World) -> None:
    say(world, paused=True)
    for number in range(DRAIN + 100):
        world.deliver(f"evt-{number}")
    world.work()
    say(world, paused=False)
    world.clock.advance(minutes=1)
    assert world.reconcile().count(Action.RESUMED) == DRAIN
    world.clock.advance(minutes=1)
    assert world.reconcile().count(Action.RESUMED) == 100


def test_two_reconcilers_at_once_wake_it_once(paused: World) -> None:
    say(paused, paused=False)
    paused.clock.advance(minutes=1)
    update, others = paused.table.update, []

    def interrupted(*given: object, **named: object) -> object:
        if not others:
            others.append(None)
            paused.clock.advance(seconds=0.001)
            others.append(paused.reconcile())
        return update(*given, **named)  # type: ignore[arg-type]

    paused.table.update = interrupted  # type: ignore[method-assign,assignment]
    report = paused.reconcile()
    assert others[1].count(Action.RESUMED) == 1
    assert report.count(Action.MOVED_ON) == 1
    assert len(paused.messages()) == 1


def test_the_time_of_a_pause_does_not_count_towards_a_runs_maximum_age(world: World) -> None:
    say(world, paused=True)
    world.deliver()
    world.work()
    world.clock.advance(days=20)  # the handler's max_age is 14 days
    say(world, paused=False)
    world.script(NAME, Deferred(world.now + timedelta(minutes=30), "the circuit is open"))
    world.pass_minutes(2)
    assert world.run().status is Status.DEFERRED
    world.pass_minutes(32)
    assert world.run().status is Status.DONE


def test_a_run_that_was_replayed_while_it_waited_is_not_woken_besides(paused: World) -> None:
    say(paused, paused=False)
    paused.replay(event_ids=["evt-1"])
    paused.clock.advance(minutes=1)
    assert paused.reconcile().count(Action.RESUMED) == 0
    assert paused.work() == [RunOutcome.DONE]
    assert len(paused.handled) == 1
