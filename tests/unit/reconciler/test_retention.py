"""A source's `retention`: its payloads are erased after it, while their events stay known."""

import json
from dataclasses import replace
from datetime import timedelta

import pytest

from tests.unit.ledger.test_erasure import PERSONAL, large, stored
from tests.unit.support.world import ACME, MANIFEST, World
from webhook_inbox.adapters.memory import Fault
from webhook_inbox.domain.errors import Deferred, Permanent
from webhook_inbox.domain.model import Status
from webhook_inbox.ingest.receipt import IngestOutcome
from webhook_inbox.ledger.schema import EVENT_LIFE
from webhook_inbox.reconciler import retention
from webhook_inbox.reconciler.report import Action

DAY = 86400.0
BODY = json.dumps({"id": "evt-1", "type": "paid", "email": PERSONAL}).encode()
SHORT = replace(MANIFEST, sources={**MANIFEST.sources, "acme": replace(ACME, retention=2 * DAY)})


@pytest.fixture
def world() -> World:
    return World(SHORT)


def kept(world: World, event_id: str = "evt-1") -> bool:
    row = world.event_row(event_id)
    assert row is not None
    return "erased_at" not in row


@pytest.mark.parametrize("body", [BODY, large()], ids=["row", "blob"])
def test_a_payload_is_erased_after_its_retention_and_not_before(world: World, body: bytes) -> None:
    world.deliver(body=body)
    world.run_until_quiet()
    world.clock.advance(days=1, hours=23)
    world.reconcile()
    assert PERSONAL in stored(world) or world.blobs.objects

    world.clock.advance(hours=1, minutes=6)
    report = world.reconcile()

    assert report.count(Action.ERASED) == 1
    assert report.complete
    assert PERSONAL not in stored(world)
    assert world.blobs.objects == {}


def test_an_erased_event_keeps_its_identity_and_its_life(world: World) -> None:
    world.deliver(body=BODY)
    world.run_until_quiet()
    row = world.event_row("evt-1")
    assert row is not None
    world.clock.advance(days=3)
    world.reconcile()

    again = world.event_row("evt-1")
    assert again is not None
    same = ("expires_at", "fingerprint", "received_at", "runs")
    assert {name: again[name] for name in same} == {name: row[name] for name in same}
    assert world.deliver(body=BODY).outcome is IngestOutcome.DUPLICATE
    world.run_until_quiet()
    assert len(world.handled) == 1


def test_the_payloads_of_other_sources_stay(world: World) -> None:
    world.deliver(source="github", body=BODY)
    world.run_until_quiet()
    world.clock.advance(days=30)
    assert world.reconcile().count(Action.ERASED) == 0
    assert PERSONAL in stored(world)


def test_without_a_retention_nothing_is_read() -> None:
    world = World()
    world.deliver(body=BODY)
    world.reconcile()
    assert world.table.get(retention.CURSORS) is None


def test_a_run_that_has_not_ended_keeps_its_payload_until_a_later_look(world: World) -> None:
    world.script("acme.fulfil", Deferred(world.now + timedelta(days=3)))
    world.deliver(body=BODY)
    world.work()
    world.clock.advance(days=2, hours=1)
    assert world.reconcile().count(Action.ERASED) == 0
    assert kept(world)

    world.run_until_quiet()
    assert world.run().status is Status.DONE
    world.clock.advance(days=1)
    world.reconcile()

    assert not kept(world)


def test_a_dead_run_has_ended_and_a_replay_after_it_is_skipped(world: World) -> None:
    world.script("acme.fulfil", Permanent(f"no such customer {PERSONAL}"))
    world.deliver(body=BODY)
    world.run_until_quiet()
    world.clock.advance(days=2, hours=1)
    world.reconcile()
    assert PERSONAL not in stored(world)

    world.replay(event_ids=["evt-1"])
    world.run_until_quiet()

    assert world.run().status is Status.SKIPPED


def test_a_run_that_has_not_begun_keeps_its_payload(world: World) -> None:
    world.deliver(body=BODY)
    world.clock.advance(days=2, hours=1)
    assert world.reconcile().count(Action.ERASED) == 0
    assert kept(world)


def test_each_payload_is_erased_once(world: World) -> None:
    for number in range(30):
        world.deliver(f"evt-{number}", body=BODY)
        world.work()
        world.clock.advance(minutes=37)
    world.run_until_quiet()
    erased = 0
    for _ in range(120):
        world.clock.advance(hours=6)
        erased += world.reconcile().count(Action.ERASED)
    assert erased == 30
    assert PERSONAL not in stored(world)


def test_an_interrupted_erasure_is_finished_by_the_next_pass(world: World) -> None:
    world.deliver(body=large())
    world.deliver(body=BODY)
    world.run_until_quiet()
    world.clock.advance(days=2, hours=1)
    world.plan.fail("DeleteObject", Fault.BEFORE)
    assert world.reconcile().count(Action.FAILED) == 1
    assert world.blobs.objects

    world.clock.advance(minutes=1)
    world.reconcile()

    assert world.blobs.objects == {}
    assert PERSONAL not in stored(world)


def test_a_pass_without_time_continues_in_the_next(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retention, "AT_ONCE", 2)
    for number in range(9):
        world.deliver(f"evt-{number}", body=BODY)
    world.run_until_quiet()
    world.clock.advance(days=3)
    update = world.table.update

    def slow(*args: object, **parts: object) -> object:
        world.clock.advance(seconds=6)
        return update(*args, **parts)  # type: ignore[arg-type]

    world.table.update = slow  # type: ignore[method-assign,assignment]
    report = world.reconcile()
    first = report.count(Action.ERASED)
    assert 0 < first < 9
    assert report.complete
    world.table.update = update  # type: ignore[method-assign]
    world.reconcile()
    assert PERSONAL not in stored(world)


def test_a_retention_that_is_added_later_applies_to_events_of_all_ages() -> None:
    world = World()
    for number in range(5):
        world.deliver(f"evt-{number}", body=BODY)
        world.work()
        world.clock.advance(days=6)
    world.run_until_quiet()
    world.deploy(SHORT)
    world.clock.advance(seconds=1)
    assert world.reconcile().count(Action.ERASED) == 5


def test_a_retention_as_long_as_an_event_reads_nothing() -> None:
    whole = replace(ACME, retention=EVENT_LIFE.total_seconds())
    world = World(replace(MANIFEST, sources={"acme": whole}))
    world.deliver(body=BODY)
    world.run_until_quiet()
    world.clock.advance(seconds=timedelta(days=34).total_seconds())
    world.reconcile()
    assert kept(world)
