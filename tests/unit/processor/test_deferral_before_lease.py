"""A run that waits for a destination before it is claimed: no attempt, no handler, nothing lost."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from tests.unit.support.world import MANIFEST, World, handler
from webhook_inbox.adapters.memory import Fault
from webhook_inbox.destinations.circuit import CallOutcome
from webhook_inbox.destinations.gate import Gate
from webhook_inbox.domain.errors import Transient
from webhook_inbox.domain.manifest import Backoff, BreakerSpec, DestinationSpec
from webhook_inbox.domain.model import Status
from webhook_inbox.queue.outcomes import RunOutcome

NAME = "acme.fulfil"
CRM = DestinationSpec("crm", "https://crm.example", breaker=BreakerSpec(failures=1, recovery=60))
SEND = "SendMessageBatch"
BOTH = pytest.mark.parametrize("fault", list(Fault))


@pytest.fixture
def world() -> World:
    """An inbox whose handler declares a destination whose circuit is open."""
    quick = Backoff(base=1, factor=1, cap=1)
    spec = handler(NAME, "paid", destinations=("crm",), backoff=quick)
    world = World(replace(MANIFEST, handlers={NAME: spec}, destinations={"crm": CRM}))
    open_circuit(world)
    return world


def open_circuit(world: World) -> None:
    gate = Gate(world.ports)
    gate.enter(CRM, {}, until=world.now + timedelta(seconds=30))
    gate.report(CRM, CallOutcome.failed())


def test_it_waits_without_an_attempt_and_says_for_what(world: World) -> None:
    world.deliver()
    assert world.work() == [RunOutcome.DEFERRED]
    run = world.run()
    assert (run.status, run.attempt_count, run.claims) == (Status.DEFERRED, 0, 0)
    assert run.waits_for == "destination crm"
    assert "crm" in run.last_error
    assert run.next_attempt_at is not None
    assert run.next_attempt_at - world.now > timedelta(seconds=59)
    assert world.handled == []


def test_once_it_recovers_each_runs_once(world: World) -> None:
    events = [f"evt-{n}" for n in range(20)]
    world.behaviours[NAME] = lambda event, ctx: call(world, ctx)
    for event_id in events:
        world.deliver(event_id)
    world.work()
    assert world.handled == []
    world.run_until_quiet()
    assert sorted(event_id for _, event_id, _ in world.handled) == sorted(events)
    assert {world.run(event_id=event_id).attempt_count for event_id in events} == {1}


def call(world: World, ctx: Any) -> None:
    """Does what `ctx.http` does around a call that is answered."""
    ctx.gate.enter(CRM, ctx.reservations, until=ctx.deadline)
    ctx.gate.report(CRM, CallOutcome.ok())


def test_it_is_looked_up_again_for_each_retry(world: World) -> None:
    """A circuit that opens between two attempts keeps the second one waiting."""
    world.clock.advance(seconds=61)
    steps = iter([fails, call])
    world.behaviours[NAME] = lambda event, ctx: next(steps)(world, ctx)
    world.deliver()
    world.work()
    before = world.run()
    assert before.status is Status.FAILED
    world.clock.advance(seconds=2)
    assert world.work() == [RunOutcome.DEFERRED]
    after = world.run()
    assert (after.attempt_count, after.attempts) == (before.attempt_count, before.attempts)
    world.run_until_quiet()
    assert world.run().status is Status.DONE


def fails(world: World, ctx: Any) -> None:
    """Fails after its own call, while another worker's call opens the circuit."""
    call(world, ctx)
    open_circuit(world)
    raise Transient("down")


def test_two_messages_of_one_run_postpone_it_once(world: World) -> None:
    world.deliver()
    first = world.taken()
    second = replace(first, id="copy", receipt="copy")
    results = [world.process(message).outcome for message in (first, second)]
    assert results == [RunOutcome.DEFERRED, RunOutcome.DELETED]
    assert world.run().generation == 1
    world.run_until_quiet()
    assert len(world.handled) == 1


def test_a_message_that_was_replaced_postpones_nothing(world: World) -> None:
    world.deliver()
    old = world.taken()
    world.replay(event_ids=("evt-1",))
    before = world.run()
    assert world.process(old).outcome is RunOutcome.DELETED
    assert world.run() == before
    world.run_until_quiet()
    assert len(world.handled) == 1


def test_the_calls_are_those_that_are_failed_below(world: World) -> None:
    world.deliver()
    message = world.taken()
    world.plan.operations()
    world.process(message)
    reserved = ["UpdateItem", "UpdateItem"]  # its turn, and the run
    assert world.plan.operations() == ["GetItem", "GetItem", "GetItem", *reserved, SEND]


@BOTH
@pytest.mark.parametrize(
    "call", [("GetItem", n) for n in range(3)] + [("UpdateItem", 0), ("UpdateItem", 1), (SEND, 0)]
)
def test_a_call_that_fails_is_made_up_for(
    world: World, call: tuple[str, int], fault: Fault
) -> None:
    world.deliver()
    message = world.taken()
    operation, place = call
    world.plan.fail(operation, fault, skip=place)
    world.process(message)
    world.plan.heal()
    world.run_until_quiet()
    run = world.run()
    assert run.status is Status.DONE
    assert len(world.handled) == 1


def test_a_breaker_that_cannot_be_read_stops_no_run_and_is_reported(world: World) -> None:
    world.deliver()
    message = world.taken()
    world.plan.fail("GetItem", skip=2, times=9)
    result = world.process(message)
    assert result.outcome is RunOutcome.DONE
    assert result.degraded


def test_who_would_wait_past_its_maximum_age_is_given_up_unasked(world: World) -> None:
    spec = handler(NAME, "paid", destinations=("crm",), max_age=60.0)
    slow = replace(CRM, breaker=BreakerSpec(failures=1, recovery=120))
    world.deploy(replace(MANIFEST, handlers={NAME: spec}, destinations={"crm": slow}))
    world.clock.advance(seconds=61)
    gate = Gate(world.ports)
    gate.enter(slow, {}, until=world.now + timedelta(seconds=30))
    gate.report(slow, CallOutcome.failed())
    world.deliver()
    world.work()
    assert world.run().status is Status.DEAD_LETTER
    assert world.run().last_error.startswith("expired: ")
    assert world.handled == []
