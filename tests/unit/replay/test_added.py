"""Replay adds the run of a handler that an event was stored without."""

from dataclasses import replace

import pytest

from tests.unit.support.world import MANIFEST, World, handler
from webhook_inbox.domain.manifest import HandlerSpec, Manifest
from webhook_inbox.domain.model import Status
from webhook_inbox.replay.replay import ReplayOutcome

NEW = "acme.notify"


def with_handler(spec: HandlerSpec) -> Manifest:
    return replace(MANIFEST, handlers={**MANIFEST.handlers, spec.name: spec})


@pytest.fixture
def world() -> World:
    """An event of a type that gained a handler after it was stored."""
    world = World()
    world.deliver(type_="refunded")
    world.deploy(with_handler(handler(NEW, "refunded")))
    return world


def counts(world: World, **request: object) -> dict[str, int]:
    return world.replay(event_ids=["evt-1"], **request).counts


def test_it_is_created_and_sent(world: World) -> None:
    assert counts(world, handler=NEW, dry_run=False) == {ReplayOutcome.ADDED: 1}
    world.work()
    [run] = world.overview().runs
    assert (run.handler, run.status, run.added) == (NEW, Status.DONE, True)
    assert world.handled == [(NEW, "evt-1", 1)]


def test_a_dry_run_says_so_and_writes_nothing(world: World) -> None:
    assert counts(world, handler=NEW, dry_run=True) == {ReplayOutcome.WOULD_ADD: 1}
    assert world.overview().runs == ()


def test_it_is_added_once(world: World) -> None:
    counts(world, handler=NEW, dry_run=False)
    assert counts(world, handler=NEW, dry_run=False) == {ReplayOutcome.REPLAYED: 1}
    world.work()
    assert world.handled == [(NEW, "evt-1", 1)]
    assert counts(world, handler=NEW, dry_run=False) == {ReplayOutcome.FINISHED: 1}


def test_an_update_whose_call_fails_is_done_by_the_next_page(world: World) -> None:
    world.plan.fail("UpdateItem", skip=0)
    first = world.replay(event_ids=["evt-1"], handler=NEW, dry_run=False)
    assert first.failed
    again = world.replay(event_ids=["evt-1"], handler=NEW, dry_run=False, cursor=first.cursor)
    assert again.counts == {ReplayOutcome.ADDED: 1}


def test_without_its_name_no_run_is_added(world: World) -> None:
    assert counts(world, dry_run=False) == {}


@pytest.mark.parametrize(
    "spec",
    [
        handler(NEW, "paid"),
        handler(NEW, "refunded", source="github"),
    ],
)
def test_a_handler_that_does_not_want_the_event_is_not_added(
    world: World, spec: HandlerSpec
) -> None:
    world.deploy(with_handler(spec))
    assert counts(world, handler=NEW, dry_run=False) == {}
