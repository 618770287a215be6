"""A captured body under a fresh id is recognised, and never runs by itself (G6)."""

from dataclasses import replace
from hashlib import sha256

import pytest

from tests.unit.support.world import ACME, GITHUB, World, with_source
from webhook_inbox.adapters.memory import Fault
from webhook_inbox.domain.errors import Unavailable
from webhook_inbox.ingest.deduplication import IdempotentReceiver
from webhook_inbox.ingest.receipt import IngestOutcome, Receipt
from webhook_inbox.ledger.schema import guard_key


def send(world: World, event_id: str, body: bytes = b'{"action": "opened"}') -> Receipt:
    return world.deliver(event_id, source="github", body=body)


def crash_before_the_event(world: World, event_id: str) -> None:
    world.plan.fail("PutItem", skip=1)
    assert send(world, event_id).status == 503
    assert world.event_row(event_id, "github") is None


def test_a_captured_body_under_a_fresh_id_is_not_run(world: World) -> None:
    send(world, "first")
    receipt = send(world, "captured")
    assert receipt.outcome is IngestOutcome.HELD
    world.run_until_quiet()
    assert len(world.handled) == 1


def test_a_captured_body_is_known_as_long_as_its_event(world: World) -> None:
    send(world, "first")
    world.clock.advance(days=35, seconds=-2)
    assert send(world, "captured").outcome is IngestOutcome.HELD


def test_the_same_id_again_is_an_ordinary_duplicate(world: World) -> None:
    send(world, "first")
    assert send(world, "first").outcome is IngestOutcome.DUPLICATE


def test_another_body_under_another_id_is_another_event(world: World) -> None:
    send(world, "first")
    assert send(world, "second", b'{"action": "closed"}').outcome is IngestOutcome.ACCEPTED


def test_a_source_that_signs_its_id_needs_no_guard(world: World) -> None:
    world.deliver()
    assert world.rows("guard#") == []


def test_a_signed_time_does_not_admit_another_id_within_its_window() -> None:
    signature = {"header": "X-Acme-Signature", "signs": "{timestamp}.{body}"}
    settings = {**ACME.settings, "signature": signature}
    world = World(with_source(replace(ACME, settings=settings)))
    captured = world.delivery("first")
    assert world.ingest.receive(captured).outcome is IngestOutcome.ACCEPTED

    headers = {**captured.headers, "x-acme-id": "second"}
    world.ingest.receive(replace(captured, headers=headers, request_id="another"))

    assert len(world.messages()) == 1


def test_a_forged_delivery_leaves_no_guard(world: World) -> None:
    world.deliver("first", source="github", secret="guessed-by-somebody")
    assert world.rows("guard#") == []


def test_a_crash_between_guard_and_event_heals_by_the_retry_of_the_same_id(world: World) -> None:
    crash_before_the_event(world, "first")
    assert send(world, "first").outcome is IngestOutcome.ACCEPTED


def test_a_crash_between_guard_and_event_does_not_keep_the_content_out(world: World) -> None:
    crash_before_the_event(world, "first")
    world.clock.advance(seconds=31)
    assert send(world, "second").outcome is IngestOutcome.ACCEPTED


def test_a_guard_that_was_just_written_is_waited_for(world: World) -> None:
    crash_before_the_event(world, "first")
    world.clock.advance(seconds=29)
    receipt = send(world, "second")
    assert (receipt.outcome, receipt.status) == (IngestOutcome.UNAVAILABLE, 503)
    assert world.event_row("second", "github") is None


def test_after_a_take_over_the_first_id_is_held(world: World) -> None:
    crash_before_the_event(world, "first")
    world.clock.advance(seconds=31)
    send(world, "second")
    assert send(world, "first").outcome is IngestOutcome.HELD


def test_a_conflict_does_not_poison_the_guard(world: World) -> None:
    send(world, "first", b'{"it": "A"}')
    assert send(world, "first", b'{"it": "B"}').outcome is IngestOutcome.CONFLICT
    world.clock.advance(seconds=31)
    assert send(world, "second", b'{"it": "B"}').outcome is IngestOutcome.ACCEPTED


def test_a_conflict_leaves_the_guard_of_the_stored_content_alone(world: World) -> None:
    send(world, "first", b'{"it": "A"}')
    send(world, "first", b'{"it": "B"}')
    assert send(world, "captured", b'{"it": "A"}').outcome is IngestOutcome.HELD


def test_a_captured_retry_whose_volatile_field_had_changed_is_not_run() -> None:
    """Its guard is its own, since its bytes are, but what it says has been run already."""
    world = World(with_source(replace(GITHUB, volatile=("attempt",))))
    send(world, "first", b'{"action": "opened", "attempt": 1}')
    assert send(world, "first", b'{"action": "opened", "attempt": 2}').status == 200
    world.clock.advance(minutes=1)
    receipt = send(world, "captured", b'{"action": "opened", "attempt": 2}')
    assert receipt.outcome is IngestOutcome.HELD
    assert len(world.messages()) == 2  # of the first, and of its retry


def test_a_guard_whose_answer_was_lost_is_our_own(world: World) -> None:
    world.plan.fail("PutItem", Fault.AFTER)
    assert send(world, "first").status == 503
    assert len(world.rows("guard#")) == 1
    assert send(world, "first").outcome is IngestOutcome.ACCEPTED


def test_of_two_that_take_a_guard_over_at_once_one_goes_on(world: World) -> None:
    crash_before_the_event(world, "dead")
    world.clock.advance(seconds=31)
    get, raced = world.table.get, []

    def overtaken(key: tuple[str, str], **parts: bool) -> object:
        found = get(key, **parts)  # type: ignore[arg-type]
        if not raced:
            raced.append(True)
            assert send(world, "quick").outcome is IngestOutcome.ACCEPTED
        return found

    world.table.get = overtaken  # type: ignore[method-assign,assignment]
    assert send(world, "slow").status == 503
    assert send(world, "slow").outcome is IngestOutcome.HELD
    assert len(world.messages()) == 1


@pytest.mark.parametrize(("slow", "quick"), [("captured", "first"), ("first", "captured")])
def test_of_a_retry_and_a_take_over_at_once_one_goes_on(
    world: World, slow: str, quick: str
) -> None:
    """Both find the old guard of `first`: each could store the content while the other does."""
    crash_before_the_event(world, "first")
    world.clock.advance(seconds=31)
    get, raced = world.table.get, []

    def overtaken(key: tuple[str, str], **parts: bool) -> object:
        found = get(key, **parts)  # type: ignore[arg-type]
        if not raced:
            raced.append(True)
            assert send(world, quick).outcome is IngestOutcome.ACCEPTED
        return found

    world.table.get = overtaken  # type: ignore[method-assign,assignment]
    assert send(world, slow).status == 503
    assert send(world, slow).outcome is IngestOutcome.HELD
    assert len(world.messages()) == 1


def test_a_guard_expires_with_its_event(world: World) -> None:
    send(world, "first")
    (row,) = world.rows("guard#")
    event = world.event_row("first", "github")
    assert event is not None
    assert row["expires_at"] == event["expires_at"]


def test_a_guard_holds_no_content(world: World) -> None:
    send(world, "first")
    (row,) = world.rows("guard#")
    assert row["pk"] == guard_key("github", sha256(b'{"action": "opened"}').hexdigest()).pk
    assert set(row) == {"pk", "sk", "event_id", "written_at", "expires_at"}


@pytest.mark.parametrize("operation", ["GetItem", "PutItem"])
def test_a_guard_that_cannot_be_asked_lets_nothing_in(world: World, operation: str) -> None:
    send(world, "first")
    world.plan.fail(operation)
    assert send(world, "captured").status == 503
    assert send(world, "captured").outcome is IngestOutcome.HELD


def test_guards_of_two_sources_are_apart() -> None:
    other = replace(GITHUB, name="mirror")
    world = World(with_source(other))
    send(world, "first")
    body = b'{"action": "opened"}'
    delivery = replace(world.delivery("x", source="github", body=body), source="mirror")
    assert world.ingest.receive(delivery).outcome is IngestOutcome.ACCEPTED


def test_recording_reports_a_table_that_is_down(world: World) -> None:
    send(world, "first")
    event = replace(world.overview("first", "github").event, event_id="other")
    receiver = IdempotentReceiver(world.manifest, world.ports)
    world.plan.fail("PutItem")
    with pytest.raises(Unavailable):
        receiver.record(event)
