"""An event's payload is erased; its ledger stays, so it is never handled again."""

import json

import pytest

from tests.unit.support.approving import ApprovingWorld
from tests.unit.support.people import person
from tests.unit.support.serial import BILL, SerialWorld, serial
from tests.unit.support.world import World, handler, with_handlers
from webhook_inbox import Approval
from webhook_inbox.adapters.memory import Fault, SeededRandomness
from webhook_inbox.domain.errors import Permanent, Transient, Unavailable
from webhook_inbox.domain.model import Status
from webhook_inbox.domain.personal import ERASED
from webhook_inbox.domain.ports import Item, Key
from webhook_inbox.handlers.approvals.request_row import Word
from webhook_inbox.ingest.receipt import IngestOutcome
from webhook_inbox.ledger.erasure import DELIVERY_LIFE, Erasure, ErasureRequest, erase

PERSONAL = "ada@example.com"
BODY = json.dumps({"id": "evt-1", "type": "paid", "email": PERSONAL}).encode()


def large() -> bytes:
    """Returns a body that is too large for a row, and that compression does not shorten."""
    noise = SeededRandomness(1)
    text = "".join(noise.token() for _ in range(700))
    return json.dumps({"id": "evt-1", "type": "paid", "email": PERSONAL, "n": text}).encode()


def erased(world: World, event_id: str = "evt-1") -> Erasure | None:
    now = world.clock.now()
    request = ErasureRequest("acme", event_id, person("kim"), "asked to", now)
    return erase(world.table, world.blobs, SeededRandomness(7), request)


def settle(world: World) -> None:
    """Lets the deliveries end that may have read no row of the event."""
    world.clock.advance(seconds=DELIVERY_LIFE.total_seconds())


def stored(world: World) -> str:
    """Returns all rows and objects."""
    rows = repr(list(world.table.everything()))
    return rows + repr(world.blobs.objects)


@pytest.mark.parametrize("body", [BODY, large()], ids=["row", "blob"])
def test_no_payload_is_left_and_a_later_delivery_is_a_duplicate(world: World, body: bytes) -> None:
    world.deliver(body=body)
    world.run_until_quiet()
    before = list(world.handled)
    settle(world)

    assert erased(world) == Erasure(world.clock.now(), ())

    assert PERSONAL not in stored(world)
    assert world.blobs.objects == {}
    assert world.deliver(body=body).outcome is IngestOutcome.DUPLICATE
    assert world.deliver(body=b'{"id": "evt-1"}').outcome is IngestOutcome.CONFLICT
    world.run_until_quiet()
    assert world.handled == before
    assert PERSONAL not in stored(world)


def assert_skipped(world: World) -> None:
    run = world.run()
    assert run is not None
    assert run.status is Status.SKIPPED
    assert "its payload was erased on 2026-" in run.last_error
    assert world.handled == []


def test_a_run_that_has_not_begun_ends_as_skipped(world: World) -> None:
    world.deliver(body=BODY)
    erased(world)

    world.run_until_quiet()

    assert_skipped(world)


def test_a_run_whose_body_is_erased_before_it_is_read_ends_as_skipped(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.deliver(body=large())
    read = world.blobs.get

    def erased_before(key: str) -> bytes | None:
        erased(world)
        return read(key)

    monkeypatch.setattr(world.blobs, "get", erased_before)
    world.run_until_quiet()

    assert_skipped(world)


def test_a_run_whose_body_is_erased_before_its_ordering_key_is_read_ends_as_skipped(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = SerialWorld(handler(BILL))
    world.deliver("evt-1", body=large())
    world.deploy(with_handlers(serial()))
    read = world.blobs.get

    def erased_before(key: str) -> bytes | None:
        erased(world)
        return read(key)

    monkeypatch.setattr(world.blobs, "get", erased_before)
    world.work()

    assert world.bill("evt-1").status is Status.SKIPPED


def test_an_attempt_that_an_erasure_did_not_see_stores_no_text(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.script("acme.fulfil", Permanent(f"no such customer {PERSONAL}"))
    world.deliver(body=BODY)
    settle(world)
    read, seen = world.table.get, list[Erasure | None]()

    def erased_after(key: Key) -> Item | None:
        row = read(key)
        if key.sk == "event" and not seen:
            seen.append(None)
            seen.append(erased(world))
        return row

    monkeypatch.setattr(world.table, "get", erased_after)
    world.work_once()

    assert seen[1] == Erasure(world.clock.now(), ())
    run = world.run()
    assert run is not None
    assert (run.status, run.last_error) == (Status.DEAD_LETTER, f"permanent: {ERASED}")
    assert PERSONAL not in stored(world)


def test_a_run_that_waits_for_its_retry_is_never_tried_again(world: World) -> None:
    world.script("acme.fulfil", Transient(f"no answer for {PERSONAL}"))
    world.deliver(body=BODY)
    world.work_once()
    erased(world)
    assert PERSONAL not in stored(world)

    world.run_until_quiet()

    run = world.run()
    assert run is not None
    assert run.status is Status.SKIPPED
    assert len(world.handled) == 1


def test_a_dead_run_keeps_its_outcome_and_a_replay_skips_it(world: World) -> None:
    world.script("acme.fulfil", Permanent(f"no such customer {PERSONAL}"))
    world.deliver(body=BODY)
    world.run_until_quiet()

    erased(world)

    run = world.run()
    assert run is not None
    assert (run.status, run.last_error) == (Status.DEAD_LETTER, ERASED)
    assert [attempt.error for attempt in run.attempts] == [ERASED]
    world.replay(event_ids=["evt-1"])
    world.run_until_quiet()
    run = world.run()
    assert run is not None
    assert run.status is Status.SKIPPED
    assert len(world.handled) == 1


def test_a_conflict_of_the_event_is_erased_with_it(world: World) -> None:
    world.deliver()
    world.deliver(body=large())
    assert len(world.blobs.objects) == 1

    erased(world)

    assert PERSONAL not in stored(world)
    assert world.blobs.objects == {}


def test_an_equal_body_of_another_event_stays(world: World) -> None:
    world.deliver("evt-1", body=large())
    world.deliver("evt-2", body=large())
    assert len(world.blobs.objects) == 2

    erased(world)

    world.run_until_quiet()
    assert [event_id for _, event_id, _ in world.handled] == ["evt-2"]


def test_an_erasure_that_was_interrupted_is_finished_by_the_next(world: World) -> None:
    world.deliver(body=large())
    settle(world)
    first = world.clock.now()
    world.plan.fail("DeleteObject", Fault.BEFORE)
    with pytest.raises(Unavailable):
        erased(world)
    world.clock.advance(minutes=1)

    assert erased(world) == Erasure(first, ())

    assert world.blobs.objects == {}


def test_an_attempt_in_progress_is_named_and_its_text_is_erased_later(world: World) -> None:
    seen: list[Erasure | None] = []

    def act(event: object, context: object) -> None:
        seen.append(erased(world))
        raise Permanent(f"no such customer {PERSONAL}")

    world.behaviours["acme.fulfil"] = act
    world.deliver(body=BODY)
    world.run_until_quiet()

    assert seen[0] is not None
    assert seen[0].unfinished == ("acme.fulfil",)
    again = erased(world)
    assert again is not None
    assert again.unfinished == ()
    assert PERSONAL not in stored(world)


def test_an_unknown_event_is_not_erased(world: World) -> None:
    assert erased(world, "evt-9") is None


def test_the_arguments_of_a_request_for_approval_are_erased_once_it_is_decided() -> None:
    asking = ApprovingWorld(approval=Approval(by="finance"))
    asking.args = {"to": PERSONAL}
    asking.asked()

    first = erased(asking)
    assert first is not None
    assert first.unfinished == ("acme.fulfil",)
    # People still decide about it.
    assert PERSONAL in asking.view().arguments

    asking.says("ann", Word.DENY)
    again = erased(asking)
    assert again is not None
    assert again.unfinished == ()
    assert PERSONAL not in stored(asking)
    assert asking.view().arguments == ERASED
