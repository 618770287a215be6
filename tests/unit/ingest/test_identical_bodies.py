"""A second event with an identical body is stored, and its runs wait for a person (G6)."""

import json
from dataclasses import replace
from typing import Any

import pytest

from tests.unit.support.holding import deciding
from tests.unit.support.people import person
from tests.unit.support.world import GITHUB, World, handler, with_source
from webhook_inbox import providers
from webhook_inbox.adapters.memory import Fault
from webhook_inbox.domain.manifest import Order
from webhook_inbox.domain.model import ApprovalOutcome, EventStatus, Status
from webhook_inbox.domain.ports import Item
from webhook_inbox.handlers.approvals.hold import ApprovalRequest, holds
from webhook_inbox.ingest.receipt import IngestOutcome, Receipt
from webhook_inbox.ingest.rejected import RejectedFilter, find
from webhook_inbox.ingest.release import Reverification
from webhook_inbox.ledger.lease import Lease, NotClaimable, Refusal, claim
from webhook_inbox.ledger.schema import IDENTICAL_BODY, run_key
from webhook_inbox.queue.message import RunMessage
from webhook_inbox.replay.replay import ReplayOutcome

BODY = b'{"action": "removed", "member": {"login": "ann"}, "customer": "cus_1"}'
NOTE = "github.announce"


def send(world: World, event_id: str, body: bytes = BODY) -> Receipt:
    return world.deliver(event_id, source="github", body=body)


def twice(world: World) -> ApprovalRequest:
    """Delivers one body under two ids, and returns the request about the second."""
    assert send(world, "first").outcome is IngestOutcome.ACCEPTED
    assert send(world, "second").outcome is IngestOutcome.HELD
    return request(world)


def request(world: World, event_id: str = "second") -> ApprovalRequest:
    return ApprovalRequest(world.run(event_id, NOTE, "github"))


def row(world: World) -> Item | None:
    return world.row("second", NOTE, "github")


def row_of(world: World) -> Item:
    found = row(world)
    assert found is not None
    return found


def with_rule(rule: str) -> World:
    return World(with_source(replace(GITHUB, identical_body=rule)))


def crash_before_the_runs(world: World) -> None:
    """Stores the second event, and ends ingest before its runs have rows."""
    send(world, "first")
    world.plan.fail("UpdateItem")  # after the guard and the event
    assert send(world, "second").status == 503
    assert world.event_row("second", "github") is not None
    assert row(world) is None


def test_the_second_of_two_honest_events_is_stored_and_held(world: World) -> None:
    asked = twice(world)

    assert world.overview("second", "github").status is EventStatus.HELD
    assert world.body("second", "github") == BODY
    world.run_until_quiet()
    assert [event_id for _, event_id, _ in world.handled] == ["first"]
    assert asked.run.status is Status.HELD
    assert asked.subject == IDENTICAL_BODY
    assert "first" in asked.reason
    assert world.overview("second", "github").event.identical_to == "first"


def test_it_is_acknowledged_like_any_event(world: World) -> None:
    send(world, "first")
    assert send(world, "second").status == 202


def test_no_message_is_sent_for_it(world: World) -> None:
    send(world, "first")
    world.work()
    send(world, "second")
    assert world.messages() == []


def test_a_large_body_is_kept(world: World) -> None:
    body = json.dumps({"action": "opened", "text": list(range(90_000))}).encode()
    send(world, "first", body)
    send(world, "second", body)
    assert world.body("second", "github") == body


def test_its_run_lives_as_long_as_any(world: World) -> None:
    twice(world)
    second = row_of(world)
    event = world.event_row("second", "github")
    assert event is not None
    assert second["expires_at"] == event["expires_at"] + 7 * 86400
    assert second["due_at"] == event["received_at"] + 28 * 86_400_000


def test_each_further_copy_is_an_event_of_its_own(world: World) -> None:
    twice(world)
    send(world, "third")
    asked = {hold.run.event_id: hold for hold in holds(world.ledger)}
    assert set(asked) == {"second", "third"}
    assert world.overview("third", "github").event.identical_to == "first"
    assert len({hold.id for hold in asked.values()}) == 2


def test_a_retry_of_the_held_delivery_changes_nothing(world: World) -> None:
    twice(world)
    before = row(world)
    assert send(world, "second").outcome is IngestOutcome.DUPLICATE
    assert row(world) == before


def test_other_content_under_its_id_is_a_conflict(world: World) -> None:
    twice(world)
    assert send(world, "second", b'{"action": "added"}').outcome is IngestOutcome.CONFLICT


def test_an_event_without_runs_has_nothing_to_hold(world: World) -> None:
    for event_id in ("first", "second"):
        receipt = world.deliver(event_id, source="github", type_="push", body=b'{"ref": "main"}')
        assert receipt.outcome is IngestOutcome.ACCEPTED
    second = world.overview("second", "github")
    assert second.event.identical_to == "first"
    assert second.status is EventStatus.SKIPPED


# -- a person decides


def test_an_approval_runs_it(world: World) -> None:
    asked = twice(world)
    decided = deciding(world).approve(asked, by=person("kim"), reason="removed twice")
    assert decided.outcome is ApprovalOutcome.APPROVED
    world.run_until_quiet()
    assert world.run("second", NOTE, "github").status is Status.DONE
    assert {event_id for _, event_id, _ in world.handled} == {"first", "second"}


def test_a_denial_ends_it(world: World) -> None:
    asked = twice(world)
    deciding(world).deny(asked, by=person("kim"), reason="a captured body")
    world.run_until_quiet()
    assert world.run("second", NOTE, "github").status is Status.SKIPPED
    assert send(world, "second").outcome is IngestOutcome.DUPLICATE
    world.run_until_quiet()
    assert [event_id for _, event_id, _ in world.handled] == ["first"]


@pytest.mark.parametrize("verb", ["approve", "deny"])
def test_a_duplicate_during_a_decision_changes_nothing(world: World, verb: str) -> None:
    asked = twice(world)
    getattr(deciding(world), verb)(asked, by=person("kim"), reason="looked at it")
    before = row(world)
    assert send(world, "second").outcome is IngestOutcome.DUPLICATE
    assert row(world) == before


# -- crashes


def test_a_crash_before_its_runs_heals_by_a_retry(world: World) -> None:
    crash_before_the_runs(world)
    assert send(world, "second").outcome is IngestOutcome.DUPLICATE
    assert request(world).run.status is Status.HELD
    world.run_until_quiet()
    assert [event_id for _, event_id, _ in world.handled] == ["first"]


def test_a_crash_before_its_runs_heals_by_the_reconciler(world: World) -> None:
    crash_before_the_runs(world)
    world.pass_minutes(12)
    assert request(world).subject == IDENTICAL_BODY
    assert [event_id for _, event_id, _ in world.handled] == ["first"]


def test_every_writer_of_the_held_run_writes_the_same_row(world: World) -> None:
    crash_before_the_runs(world)
    world.pass_minutes(12)
    adopted = row(world)
    other = World(world.manifest)
    crash_before_the_runs(other)
    send(other, "second")
    assert adopted == row(other)


def test_a_lost_answer_to_the_runs_write_heals(world: World) -> None:
    send(world, "first")
    world.plan.fail("UpdateItem", Fault.AFTER)
    assert send(world, "second").status == 503
    assert send(world, "second").outcome is IngestOutcome.DUPLICATE
    assert request(world).run.status is Status.HELD


def test_a_replay_by_name_is_no_decision(world: World) -> None:
    crash_before_the_runs(world)
    assert world.replay(event_ids=["second"]).counts == {ReplayOutcome.HELD: 1}
    assert row(world) is None
    send(world, "second")
    assert world.replay(event_ids=["second"]).counts == {ReplayOutcome.HELD: 1}
    world.run_until_quiet()
    assert [event_id for _, event_id, _ in world.handled] == ["first"]


@pytest.mark.parametrize("rows", ["without a row", "with a row"])
def test_a_first_message_of_it_leases_nothing(world: World, rows: str) -> None:
    crash_before_the_runs(world)
    if rows == "with a row":
        send(world, "second")
    world.work()
    world.lanes.send([("default", RunMessage("github", "second", NOTE))])
    message = world.taken()
    event = world.overview("second", "github").event
    with pytest.raises(NotClaimable) as refused:
        claim(
            world.table,
            event=event,
            spec=world.manifest.handlers[NOTE],
            generation=0,
            message=message,
            lease=Lease("lease-1", "worker-1", world.now, "v1"),
            now=world.now,
        )
    assert refused.value.refusal is Refusal.STALE_GENERATION


# -- the source's rule


def test_a_source_may_run_identical_bodies() -> None:
    world = with_rule("run")
    send(world, "first")
    assert send(world, "second").outcome is IngestOutcome.ACCEPTED
    world.run_until_quiet()
    assert [event_id for _, event_id, _ in world.handled] == ["first", "second"]
    assert world.overview("second", "github").event.identical_to == "first"


def test_a_source_may_drop_identical_bodies() -> None:
    world = with_rule("drop")
    send(world, "first")
    receipt = send(world, "second")
    assert (receipt.outcome, receipt.status) == (IngestOutcome.REPLAYED, 200)
    world.run_until_quiet()
    assert [event_id for _, event_id, _ in world.handled] == ["first"]
    stored = world.overview("second", "github").event
    assert (stored.dropped, stored.identical_to, stored.runs) == ("identical-body", "first", ())
    assert send(world, "second").outcome is IngestOutcome.DUPLICATE


def test_an_event_keeps_the_rule_that_it_was_accepted_with(world: World) -> None:
    crash_before_the_runs(world)
    world.deploy(with_source(replace(GITHUB, identical_body="run")))
    assert send(world, "second").outcome is IngestOutcome.DUPLICATE
    assert request(world).run.status is Status.HELD


# -- order


def test_a_held_copy_does_not_block_its_ordering_key() -> None:
    serial = handler(
        NOTE, "issues*", source="github", lane="notes", order=Order("serial", "customer")
    )
    manifest = with_source(GITHUB)
    world = World(replace(manifest, handlers={NOTE: serial}))
    asked = twice(world)
    send(world, "third", b'{"action": "added", "customer": "cus_1"}')
    world.run_until_quiet()
    assert [event_id for _, event_id, _ in world.handled] == ["first", "third"]
    deciding(world).approve(asked, by=person("kim"), reason="removed twice")
    world.run_until_quiet()
    assert [event_id for _, event_id, _ in world.handled] == ["first", "third", "second"]
    assert world.run("second", NOTE, "github").ordering_key == "cus_1"


def test_a_reused_id_keeps_the_record_of_its_first_event(world: World) -> None:
    """Its run is finished: it is neither held nor lost to TTL (decision 10)."""
    send(world, "second", b'{"action": "earlier"}')
    world.run_until_quiet()
    world.clock.advance(days=36)
    twice_again = [send(world, event_id).outcome for event_id in ("first", "second")]
    assert twice_again == [IngestOutcome.ACCEPTED, IngestOutcome.HELD]
    world.pass_minutes(180)
    row: Item = row_of(world)
    event = world.event_row("second", "github")
    assert event is not None
    assert row["status"] == "done"
    assert row["expires_at"] == event["expires_at"] + 7 * 86400
    assert run_key("github", "second", NOTE).pk == row["pk"]


def test_a_released_delivery_with_a_known_body_is_held(world: World) -> None:
    world.deliver("second", source="github", body=BODY, secret="a-later-secret")
    send(world, "first")
    world.vault.rotate("github", "a-later-secret")
    judge = Reverification(world.manifest, replace(world.ports), providers=providers.load)
    (kept,) = find(world.table, "github", RejectedFilter(), now=world.now)
    told: Any = {"by": person("kim"), "reason": "the secret was wrong", "now": world.now}
    assert judge.release(kept, **told).verdict is IngestOutcome.HELD
    world.run_until_quiet()
    assert [event_id for _, event_id, _ in world.handled] == ["first"]
    assert request(world).identical_to == "first"
