"""Runs of a paused tenant: they wait, the others do not, and they go on after the resumption."""

from dataclasses import replace

import pytest

from tests.unit.support.people import person
from tests.unit.support.world import ACME, World, with_source
from webhook_inbox.domain.errors import Deferred
from webhook_inbox.domain.model import Status
from webhook_inbox.ledger.pauses import (
    RECHECK,
    RESUMING,
    RESUMPTION,
    TENANT_RESUMPTION,
    PauseRequest,
    Subject,
    pause,
    resume,
)
from webhook_inbox.ledger.schema import DUE_SHARDS
from webhook_inbox.reconciler.due_index import DRAIN
from webhook_inbox.reconciler.report import Action

NAME = "acme.fulfil"
SOURCE = replace(ACME, tenant=("header", "x-tenant"))


def say(
    world: World, *, paused: bool, name: str = "acct_7", subject: Subject = Subject.TENANT
) -> None:
    """Pauses or resumes a tenant, and lets the workers hear of it."""
    request = PauseRequest(name, person("kim"), "a flood", world.now, subject)
    (pause if paused else resume)(world.table, world.randomness, request)
    world.clock.advance(seconds=5)


def deliver(world: World, event_id: str = "evt-1", tenant: str = "acct_7") -> None:
    world.deliver(event_id, headers={"x-tenant": tenant} if tenant else {})


@pytest.fixture
def world() -> World:
    """An inbox whose source has tenants."""
    return World(with_source(SOURCE))


@pytest.fixture
def paused(world: World) -> World:
    """The inbox with a paused tenant and a run of it that waits."""
    say(world, paused=True)
    deliver(world)
    world.work()
    return world


def test_a_run_of_a_paused_tenant_waits_and_spends_no_attempt(paused: World) -> None:
    run = paused.run()
    assert (run.status, run.parked, run.waits_for) == (Status.DEFERRED, True, TENANT_RESUMPTION)
    assert (run.attempt_count, run.attempts_in_round) == (0, 0)
    assert run.last_error == "tenant acct_7 is paused: a flood"
    assert paused.messages() == []


def test_the_runs_of_other_tenants_and_of_none_go_on(paused: World) -> None:
    deliver(paused, "evt-2", "acct_8")
    deliver(paused, "evt-3", "")
    paused.work()
    assert [event_id for _, event_id, _ in paused.handled] == ["evt-2", "evt-3"]


def test_it_is_moved_on_hour_by_hour_without_a_message(paused: World) -> None:
    paused.clock.advance(seconds=RECHECK.total_seconds())
    report = paused.reconcile()
    assert (report.count(Action.POSTPONED), report.count(Action.RESUMED)) == (1, 0)
    assert paused.messages() == []
    assert paused.run().waits_for == TENANT_RESUMPTION


def test_a_run_that_waits_for_a_time_waits_for_the_resumption_then(world: World) -> None:
    world.script(NAME, Deferred(world.now + 3 * RECHECK, "not yet"))
    deliver(world)
    world.work()
    say(world, paused=True)
    world.clock.advance(hours=3)
    assert world.reconcile().count(Action.RESUMED) == 0
    assert world.run().waits_for == TENANT_RESUMPTION


def test_a_replayed_run_of_a_paused_tenant_waits(world: World) -> None:
    world.fails(NAME, Deferred(world.now, "never"))
    deliver(world)
    say(world, paused=True)
    world.work()
    world.behaviours.clear()
    world.replay(event_ids=["evt-1"])
    world.work()
    assert world.run().waits_for == TENANT_RESUMPTION
    assert world.handled == []


def test_it_continues_with_the_next_pass_after_the_resumption(paused: World) -> None:
    say(paused, paused=False)
    paused.clock.advance(minutes=1)
    assert paused.reconcile().count(Action.RESUMED) == 1
    paused.work()
    run = paused.run()
    assert (run.status, run.last_error) == (Status.DONE, "")


def test_only_the_runs_of_the_resumed_tenant_continue(paused: World) -> None:
    say(paused, paused=True, name="acct_8")
    deliver(paused, "evt-2", "acct_8")
    paused.work()
    say(paused, paused=False)
    paused.clock.advance(minutes=1)
    assert paused.reconcile().count(Action.RESUMED) == 1
    paused.work()
    assert paused.run("evt-2").waits_for == TENANT_RESUMPTION
    assert [event_id for _, event_id, _ in paused.handled] == ["evt-1"]


@pytest.mark.parametrize("first", list(Subject))
def test_a_run_with_two_pauses_waits_for_both_resumptions(world: World, first: Subject) -> None:
    names = {Subject.HANDLER: NAME, Subject.TENANT: "acct_7"}
    for subject, name in names.items():
        say(world, paused=True, name=name, subject=subject)
    deliver(world)
    world.work()
    assert world.run().waits_for == RESUMPTION
    say(world, paused=False, name=names.pop(first), subject=first)
    world.clock.advance(minutes=1)
    assert world.reconcile().count(Action.RESUMED) == 0
    [(other, name)] = names.items()
    say(world, paused=False, name=name, subject=other)
    world.clock.advance(minutes=1)
    assert world.reconcile().count(Action.RESUMED) == 1
    assert world.work() == ["done"]


def test_the_runs_of_a_tenant_are_sent_at_the_drain_rate(world: World) -> None:
    say(world, paused=True)
    for number in range(DRAIN + 10):
        deliver(world, f"evt-{number}")
    world.work()
    say(world, paused=False)
    world.clock.advance(minutes=1)
    assert world.reconcile().count(Action.RESUMED) == DRAIN
    world.clock.advance(minutes=1)
    assert world.reconcile().count(Action.RESUMED) == 10


def test_the_time_of_a_pause_does_not_count_towards_a_runs_maximum_age(world: World) -> None:
    say(world, paused=True)
    deliver(world)
    world.work()
    world.clock.advance(days=20)  # the handler's max_age is 14 days
    say(world, paused=False)
    world.script(NAME, Deferred(world.now + RECHECK, "the circuit is open"))
    world.pass_minutes(62)
    assert world.run().status is Status.DONE


@pytest.mark.parametrize("handler_is_paused", [False, True])
def test_only_a_resumption_of_late_is_searched_in_handlers_that_go_on(
    world: World, handler_is_paused: bool
) -> None:
    if handler_is_paused:
        say(world, paused=True, name=NAME, subject=Subject.HANDLER)
    say(world, paused=True)
    say(world, paused=False)
    world.clock.advance(seconds=RESUMING.total_seconds() + 1)
    world.pass_minutes(1)
    world.plan.operations()
    world.clock.advance(minutes=1)
    world.reconcile()
    quiet = world.plan.operations().count("Query")
    say(world, paused=True)
    say(world, paused=False)
    world.reconcile()
    # One more look at the index, handler by handler and shard by shard, while runs may wait.
    handlers = len(world.manifest.handlers) - handler_is_paused
    assert world.plan.operations().count("Query") == quiet + DUE_SHARDS * handlers
