"""An erasure deletes every object of an event, also those that no row names."""

import json
from dataclasses import replace
from datetime import timedelta

import pytest

from tests.unit.ledger.test_erasure import PERSONAL, erased, large, stored
from tests.unit.support.batches import Batches, mail, with_mail
from tests.unit.support.people import person
from tests.unit.support.world import ACME, MANIFEST, World
from webhook_inbox.adapters.memory import Fault, SeededRandomness
from webhook_inbox.domain.errors import Transient
from webhook_inbox.domain.ports import Item, Key
from webhook_inbox.domain.timestamps import to_ms
from webhook_inbox.handlers.context import Context
from webhook_inbox.ingest.receipt import IngestOutcome
from webhook_inbox.ledger import payloads
from webhook_inbox.ledger.erasure import DELIVERY_LIFE, Erasure, ErasureRequest, erase
from webhook_inbox.ledger.schema import conflict_key, event_key

MUTABLE = replace(ACME, volatile=("attempt",), retention=2 * 86_400.0)


@pytest.fixture
def world() -> World:
    return World(replace(MANIFEST, sources={**MANIFEST.sources, "acme": MUTABLE}))


def attempt(number: int) -> bytes:
    """Returns the large body of a provider's n-th attempt, as Stripe's `pending_webhooks`."""
    return json.dumps({**json.loads(large()), "attempt": number}).encode()


def leave_orphan(world: World, event_id: str = "evt-1") -> None:
    """Stores an event whose first delivery uploaded its body and could not write the row."""
    world.plan.fail("PutItem", Fault.BEFORE)
    assert world.deliver(event_id, body=attempt(1)).outcome is IngestOutcome.UNAVAILABLE
    world.plan.heal()
    assert world.deliver(event_id, body=attempt(2)).outcome is IngestOutcome.ACCEPTED
    assert len(world.blobs.objects) == 2


def test_an_object_whose_row_was_not_written_is_erased(world: World) -> None:
    leave_orphan(world)

    erased(world)

    assert world.blobs.objects == {}


def test_an_object_of_two_deliveries_at_once_is_erased(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    put = world.blobs.put

    def put_second(key: str, data: bytes) -> None:
        monkeypatch.setattr(world.blobs, "put", put)
        world.deliver(body=attempt(2))
        put(key, data)

    monkeypatch.setattr(world.blobs, "put", put_second)
    assert world.deliver(body=attempt(1)).outcome is IngestOutcome.DUPLICATE
    assert len(world.blobs.objects) == 2

    erased(world)

    assert world.blobs.objects == {}


def test_a_retention_erases_the_object_that_no_row_names(world: World) -> None:
    leave_orphan(world)
    world.run_until_quiet()
    world.clock.advance(days=2, hours=1)

    world.reconcile()

    assert world.blobs.objects == {}


def test_an_upload_in_progress_is_named_and_erased_by_the_next(world: World) -> None:
    world.deliver(body=attempt(1))
    received = world.clock.now()
    first = erased(world)
    assert first is not None
    assert first.arriving_until is not None
    assert first.arriving_until - received < DELIVERY_LIFE
    # The upload of a delivery that read no row, and whose invocation has ended.
    world.blobs.put(f"{payloads.event_prefix('acme', 'evt-1')}{to_ms(received)}-{'0' * 64}", b"x")
    world.clock.advance(seconds=DELIVERY_LIFE.total_seconds())

    again = erased(world)

    assert again is not None
    assert (again.unfinished, again.arriving_until) == ((), None)
    assert world.blobs.objects == {}


def test_a_retention_erases_what_arrived_after_an_erasure_by_an_operator(world: World) -> None:
    world.deliver(body=attempt(1))
    received = world.clock.now()
    erased(world)
    late = f"{payloads.event_prefix('acme', 'evt-1')}{to_ms(received)}-{'0' * 64}"
    world.blobs.put(late, b"x")
    world.run_until_quiet()
    world.clock.advance(days=2, hours=1)

    world.reconcile()

    assert world.blobs.objects == {}


def conflict_in_progress(world: World, monkeypatch: pytest.MonkeyPatch) -> Erasure:
    """Erases an event in the moment in which a conflict of it uploads its body."""
    put, seen = world.blobs.put, list[Erasure | None]()

    def put_after(key: str, data: bytes) -> None:
        seen.append(erased(world))
        put(key, data)

    monkeypatch.setattr(world.blobs, "put", put_after)
    assert world.deliver(body=large()).outcome is IngestOutcome.CONFLICT
    monkeypatch.setattr(world.blobs, "put", put)
    assert seen[0] is not None
    return seen[0]


def test_a_conflict_in_progress_is_named_and_erased_by_the_next(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.deliver()
    world.clock.advance(days=1)
    first = conflict_in_progress(world, monkeypatch)
    assert first.arriving_until == world.clock.now() + DELIVERY_LIFE - timedelta(milliseconds=1)
    assert len(world.blobs.objects) == 1
    world.clock.advance(seconds=DELIVERY_LIFE.total_seconds())

    again = erased(world)

    assert again is not None
    assert (again.unfinished, again.arriving_until) == ((), None)
    assert world.blobs.objects == {}
    assert PERSONAL not in stored(world)


def test_a_conflict_after_the_erasure_stores_no_payload(world: World) -> None:
    world.deliver()
    world.clock.advance(days=1)
    erased(world)

    assert world.deliver(body=large()).outcome is IngestOutcome.CONFLICT

    assert world.blobs.objects == {}
    assert PERSONAL not in stored(world)
    [row] = world.table.query(conflict_key("acme", "evt-1", "").pk)
    assert row["headers"] == {}
    again = erased(world)
    assert again is not None
    assert (again.unfinished, again.arriving_until) == ((), None)


def test_a_conflict_that_comes_again_is_stored_once(world: World) -> None:
    world.deliver()
    world.deliver(body=large())
    before = stored(world)

    assert world.deliver(body=large()).outcome is IngestOutcome.CONFLICT

    assert stored(world) == before


def test_a_conflict_whose_upload_failed_is_stored_by_the_next(world: World) -> None:
    world.deliver()
    world.plan.fail("PutObject", Fault.BEFORE)
    assert world.deliver(body=large()).outcome is IngestOutcome.UNAVAILABLE
    world.plan.heal()

    assert world.deliver(body=large()).outcome is IngestOutcome.CONFLICT

    [row] = world.table.query(conflict_key("acme", "evt-1", "").pk)
    assert row["body_ref"] in world.blobs.objects
    assert "arriving" not in row


def test_a_retention_waits_for_a_conflict_in_progress(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.deliver()
    world.run_until_quiet()
    world.clock.advance(days=2, hours=1)
    put = world.blobs.put

    def put_after(key: str, data: bytes) -> None:
        world.reconcile()
        put(key, data)

    monkeypatch.setattr(world.blobs, "put", put_after)
    world.deliver(body=large())
    monkeypatch.setattr(world.blobs, "put", put)
    assert len(world.blobs.objects) == 1
    world.clock.advance(minutes=6)

    world.reconcile()

    assert world.blobs.objects == {}
    assert PERSONAL not in stored(world)


@pytest.mark.parametrize("deleted", [False, True], ids=["row", "no row"])
def test_what_is_left_of_an_expired_event_is_erased(world: World, deleted: bool) -> None:
    leave_orphan(world)
    world.deliver(body=b'{"id": "evt-1"}')
    world.clock.advance(days=36)
    if deleted:
        world.table.delete_expired(world.clock.now())

    found = erased(world)

    assert found is not None
    assert (found.unfinished, found.arriving_until) == ((), None)
    assert world.blobs.objects == {}
    assert PERSONAL not in stored(world)


def test_the_body_of_the_next_event_with_this_id_stays(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    leave_orphan(world)
    world.clock.advance(days=36)
    put, seen = world.blobs.put, list[Erasure | None]()

    def put_before(key: str, data: bytes) -> None:
        put(key, data)
        seen.append(erased(world))

    monkeypatch.setattr(world.blobs, "put", put_before)
    assert world.deliver(body=attempt(1)).outcome is IngestOutcome.ACCEPTED

    [key] = world.blobs.objects
    assert (world.event_row() or {})["body_ref"] == key
    assert seen[0] is not None
    assert seen[0].arriving_until is not None


def test_the_orphan_of_an_earlier_event_with_this_id_is_erased(world: World) -> None:
    leave_orphan(world)
    world.clock.advance(days=36)
    world.deliver(body=attempt(1))
    world.clock.advance(days=1)
    assert len(world.blobs.objects) == 3

    erased(world)

    assert world.blobs.objects == {}


def test_the_error_text_of_an_effect_is_erased() -> None:
    world = World()

    def act(event: object, context: Context) -> None:
        context.effect("pay", fail, args={})

    def fail() -> None:
        raise Transient(f"no such customer {PERSONAL}")

    world.behaviours["acme.fulfil"] = act
    world.deliver()
    world.work_once()
    assert PERSONAL in stored(world)

    erased(world)

    assert PERSONAL not in stored(world)


@pytest.mark.parametrize("key", [None, "customer 7"], ids=["own", "shared"])
def test_an_attempt_that_an_erasure_did_not_see_stores_no_text_of_an_effect(
    monkeypatch: pytest.MonkeyPatch, key: str | None
) -> None:
    world = World()
    world.deliver()

    def act(event: object, context: Context) -> None:
        context.effect("pay", fail, args={}, key=key)

    def fail() -> None:
        raise Transient(f"no such customer {PERSONAL}")

    world.behaviours["acme.fulfil"] = act
    world.clock.advance(minutes=10)
    read, seen = world.table.get, list[Erasure | None]()

    def erased_after(key: Key) -> Item | None:
        row = read(key)
        if key.sk == "event" and not seen:
            seen.append(None)
            seen.append(erased(world))
        return row

    monkeypatch.setattr(world.table, "get", erased_after)
    world.work_once()

    assert seen[1] is not None
    assert (seen[1].unfinished, seen[1].arriving_until) == ((), None)
    assert PERSONAL not in stored(world)


def erase_mail(world: World, event_id: str) -> Erasure:
    request = ErasureRequest("mail", event_id, person("kim"), "asked to", world.clock.now())
    found = erase(world.table, world.blobs, SeededRandomness(7), request)
    assert found is not None
    return found


@pytest.mark.parametrize("days", [0, 36], ids=["live", "expired"])
@pytest.mark.parametrize("more", [{}, {"note": json.loads(large())["n"]}], ids=["row", "object"])
def test_the_batch_that_still_has_an_items_text_is_named(more: dict[str, str], days: int) -> None:
    world = Batches(with_mail())
    batch = world.sent(mail("a", **more), mail("b"))
    world.run_until_quiet()
    world.clock.advance(days=days)

    assert erase_mail(world, "a").batch == batch
    assert erase_mail(world, batch).batch == ""
    assert erase_mail(world, "b").batch == ""


def test_a_batch_whose_object_outlives_its_row_is_named() -> None:
    world = Batches(with_mail())
    batch = world.sent(mail("a", note=json.loads(large())["n"]))
    world.run_until_quiet()
    world.clock.advance(days=36)
    world.table.delete(event_key("mail", batch))

    assert erase_mail(world, "a").batch == batch
    assert erase_mail(world, batch).batch == ""
    assert erase_mail(world, "a").batch == ""
