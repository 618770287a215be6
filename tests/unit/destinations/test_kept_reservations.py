"""A run that its own call put off keeps its turn over the wait."""

from dataclasses import replace
from datetime import timedelta

import pytest

from tests.unit.destinations.site import LIMITED, Site
from tests.unit.support.world import World, handler, with_handlers
from webhook_inbox.domain.errors import Deferred
from webhook_inbox.domain.internal_errors import Postponed
from webhook_inbox.domain.model import Status
from webhook_inbox.handlers.context import Context
from webhook_inbox.handlers.event import Event
from webhook_inbox.queue.outcomes import RunOutcome


@pytest.fixture
def world() -> World:
    return World()


def test_a_call_that_is_put_off_names_its_turn_and_its_destination() -> None:
    site = Site(LIMITED)
    site.take(90)
    reservations = site.admitted()

    with pytest.raises(Deferred) as put_off:
        site.enter(reservations)

    assert put_off.value.reservations == reservations
    assert put_off.value.waits_for == "destination crm"


def test_a_deferred_run_keeps_the_turns_it_was_given_until_it_is_claimed(world: World) -> None:
    due = world.now + timedelta(minutes=1)
    world.script("acme.fulfil", Postponed(due, "full", reservations={"crm": 7, "shop": 9}))
    world.deliver()

    assert world.work() == [RunOutcome.DEFERRED]

    assert world.run().reservations == {"crm": 7, "shop": 9}
    world.clock.advance(seconds=61)
    assert world.work() == [RunOutcome.DONE]
    assert world.run().reservations == {}


def test_a_run_that_its_call_put_off_goes_before_those_who_came_later(world: World) -> None:
    """Ten runs call an undeclared destination that takes one call in ten seconds."""
    slow = replace(LIMITED, rate=0.1)
    world.deploy(replace(with_handlers(handler("acme.fulfil", "paid")), destinations={"crm": slow}))
    called: list[str] = []

    def call(event: Event, context: Context) -> None:
        context.gate.enter(slow, context.reservations, until=context.deadline)
        called.append(event.id)

    world.behaviours["acme.fulfil"] = call
    for number in range(10):
        world.deliver(f"evt-{number}")
        world.work()
        world.clock.advance(seconds=1)

    for _ in range(200):
        world.clock.advance(seconds=1)
        world.work()

    assert called == [f"evt-{number}" for number in range(10)]
    assert {world.run(event_id).status for event_id in called} == {Status.DONE}
