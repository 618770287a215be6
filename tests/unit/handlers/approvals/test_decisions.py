"""Holds: what a person decides, and what becomes of the run and its effect."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from tests.unit.support.holding import (
    FINGERPRINT,
    SUBJECT,
    committed,
    deciding,
    effect,
    hold,
    hold_next,
    shared_effect,
)
from tests.unit.support.people import person
from tests.unit.support.world import World, handler, with_handlers
from webhook_inbox import Deferred, Permanent, Transient
from webhook_inbox.adapters.memory import Fault
from webhook_inbox.domain.errors import Unavailable
from webhook_inbox.domain.manifest import Manifest
from webhook_inbox.domain.model import ApprovalOutcome, Run, Status
from webhook_inbox.domain.ports import Change, Outgoing
from webhook_inbox.domain.timestamps import to_ms
from webhook_inbox.handlers.approvals.hold import ApprovalRequest, holds
from webhook_inbox.handlers.effects.journal import Unstorable, decode
from webhook_inbox.handlers.effects.manual_commit import NoDoubt
from webhook_inbox.ledger.schema import run_key
from webhook_inbox.queue.outcomes import RunOutcome
from webhook_inbox.reconciler.report import Action

BOTH = pytest.mark.parametrize("fault", list(Fault))
WHO: dict[str, Any] = {"by": person("kim"), "reason": "looked at it"}


# -- finding them


def test_a_held_run_is_found_with_what_is_to_be_decided(world: World) -> None:
    expected = hold(world)
    (found,) = holds(world.ledger)
    assert found == expected
    assert (found.subject, found.effect, found.fingerprint) == (SUBJECT, "refund", FINGERPRINT)
    assert found.reason == "it is unknown whether it happened"
    assert found.shows == '{"amount": 42}'
    assert found.since == world.now


def test_only_held_runs_are_found(world: World) -> None:
    world.dead("evt-dead")
    hold(world, "evt-1")
    assert [found.run.event_id for found in holds(world.ledger)] == ["evt-1"]


def test_a_hold_of_a_policy_is_about_no_effect(world: World) -> None:
    assert hold(world, subject="policy").effect == ""


def test_a_hold_that_says_nothing_of_itself_has_words_all_the_same() -> None:
    bare = ApprovalRequest(
        Run("acme", "evt-1", "acme.fulfil", "paid", Status.HELD, last_error="look at it")
    )
    assert (bare.subject, bare.reason, bare.shows, bare.since) == (
        "handler",
        "look at it",
        "",
        None,
    )
    assert len(bare.id) == 8


def test_the_same_run_held_again_for_the_same_thing_has_another_id(world: World) -> None:
    first = hold(world)
    deciding(world).approve(first, **WHO)
    second = hold_next(world)
    assert (second.subject, second.fingerprint) == (first.subject, first.fingerprint)
    assert second.id != first.id


# -- approving


def test_an_approved_run_goes_on(world: World) -> None:
    decision = deciding(world).approve(hold(world), **WHO)
    assert decision.outcome is ApprovalOutcome.APPROVED
    assert decision.run == world.run()
    assert world.generations() == [1]
    assert world.work() == [RunOutcome.DONE]
    assert world.run().status is Status.DONE


def test_the_approval_says_who_when_why_and_for_what(world: World) -> None:
    asked = hold(world)
    world.clock.advance(minutes=3)
    deciding(world).approve(asked, **WHO)
    word = world.run().approvals[SUBJECT]
    assert (word["by"], word["reason"], word["at"]) == ("kim", "looked at it", to_ms(world.now))
    assert word["fingerprint"] == FINGERPRINT


def test_approvals_of_other_subjects_stay(world: World) -> None:
    deciding(world).approve(hold(world, subject="policy"), **WHO)
    deciding(world).approve(hold_next(world), **WHO)
    assert set(world.run().approvals) == {"policy", SUBJECT}


def test_the_approval_outlives_later_attempts(world: World) -> None:
    deciding(world).approve(hold(world), **WHO)
    world.script("acme.fulfil", Transient("down"))
    world.work()
    assert set(world.run().approvals) == {SUBJECT}


def test_nothing_of_the_hold_is_left(world: World) -> None:
    deciding(world).approve(hold(world), **WHO)
    row = world.row()
    assert row is not None
    assert {"held", "lease_id", "claimed_until", "waits_for"}.isdisjoint(row)


def test_a_hold_spends_no_attempt(world: World) -> None:
    deciding(world).approve(hold(world), **WHO)
    world.fails("acme.fulfil", Transient("down"))
    world.run_until_quiet()
    assert world.run().attempt_count == 3


def test_it_goes_to_the_lane_its_handler_has_now(world: World) -> None:
    asked = hold(world)
    world.deploy(with_handlers(handler("acme.fulfil", lane="slow")))
    deciding(world).approve(asked, **WHO)
    assert [m["handler"] for m in world.messages("slow")] == ["acme.fulfil"]


def test_the_message_that_was_held_is_dropped_should_it_come_again(world: World) -> None:
    world.deliver()
    (copy,) = world.queues["default"].bodies
    asked = hold_next(world)
    deciding(world).approve(asked, **WHO)
    world.queues["default"].send([Outgoing(copy)])
    assert sorted(world.work()) == [RunOutcome.DELETED, RunOutcome.DONE]
    assert len(world.handled) == 1


def test_an_event_that_has_expired_cannot_be_approved(world: World) -> None:
    asked = hold(world)
    world.clock.advance(days=36)
    assert deciding(world).approve(asked, **WHO).outcome is ApprovalOutcome.EXPIRED
    effect(world, asked.run)
    assert deciding(world).happened(asked, None, **WHO).outcome is ApprovalOutcome.EXPIRED
    assert world.rows("audit#") == []


def test_waiting_for_a_person_does_not_use_up_a_runs_maximum_age(world: World) -> None:
    asked = hold(world)
    world.clock.advance(days=20)  # the handler's max_age is 14 days
    deciding(world).approve(asked, **WHO)
    world.script("acme.fulfil", Deferred(world.now + timedelta(minutes=5), "the circuit is open"))
    assert world.work() == [RunOutcome.DEFERRED]


# -- without a queue


def test_where_the_queue_fails_the_reconciler_sends_it_in_its_next_pass(world: World) -> None:
    asked = hold(world)
    world.plan.fail("SendMessageBatch")
    assert deciding(world).approve(asked, **WHO).outcome is ApprovalOutcome.UNSENT
    assert world.messages() == []
    world.clock.advance(minutes=1)
    assert world.reconcile().count(Action.RESUMED) == 1
    assert world.generations() == [1]
    assert world.work() == [RunOutcome.DONE]


def test_a_person_who_does_not_know_the_handlers_leaves_the_sending_to_the_reconciler(
    world: World,
) -> None:
    asked = hold(world)
    manifest = world.manifest
    world.manifest = Manifest()
    assert deciding(world).approve(asked, **WHO).outcome is ApprovalOutcome.UNSENT
    world.manifest = manifest
    world.clock.advance(minutes=1)
    world.reconcile()
    assert world.work() == [RunOutcome.DONE]


def test_a_crash_before_the_message_heals(world: World) -> None:
    asked = hold(world)
    world.plan.fail("SendMessageBatch")
    world.plan.fail("UpdateItem", skip=1)  # nor can it be parked
    assert deciding(world).approve(asked, **WHO).outcome is ApprovalOutcome.UNSENT
    world.run_until_quiet()
    assert world.run().status is Status.DONE


# -- denying


def test_a_denied_run_is_skipped_and_says_by_whom_and_why(world: World) -> None:
    decision = deciding(world).deny(hold(world), **WHO)
    assert decision.outcome is ApprovalOutcome.DENIED
    run = world.run()
    assert decision.run == run
    assert (run.status, run.last_error) == (Status.SKIPPED, "denied by kim: looked at it")
    assert run.done_at == world.now
    assert not run.in_due_index
    assert not run.held
    assert list(holds(world.ledger)) == []
    assert world.handled == []


def test_a_denied_run_never_runs_again(world: World) -> None:
    world.deliver()
    (copy,) = world.queues["default"].bodies
    deciding(world).deny(hold_next(world), **WHO)
    world.queues["default"].send([Outgoing(copy)])
    world.run_until_quiet()
    assert world.run().status is Status.SKIPPED
    assert world.replay(event_ids=["evt-1"]).counts == {"finished": 1}


def test_a_denial_leaves_effects_alone(world: World) -> None:
    asked = hold(world)
    key = effect(world, asked.run)
    before = world.peek(key)
    deciding(world).deny(asked, **WHO)
    assert world.peek(key) == before


def test_an_event_that_has_expired_can_still_be_denied(world: World) -> None:
    asked = hold(world)
    world.clock.advance(days=36)
    assert deciding(world).deny(asked, **WHO).outcome is ApprovalOutcome.DENIED


def test_a_denial_with_a_very_long_reason_is_cut(world: World) -> None:
    deciding(world).deny(hold(world), by=person("kim"), reason="x" * 5000)
    assert len(world.run().last_error.encode()) == 1024


# -- an effect in doubt that did happen


def test_an_effect_that_happened_is_committed_by_hand_and_its_run_goes_on(world: World) -> None:
    asked = hold(world)
    key = effect(world, asked.run)
    decision = deciding(world).happened(asked, {"id": "re_1"}, **WHO)
    assert (decision.outcome, decision.committed) == (ApprovalOutcome.APPROVED, True)
    row = world.peek(key)
    assert row is not None
    assert (row["status"], decode(row["result"])) == ("committed", {"id": "re_1"})
    assert (row["found_by"], row["word"]) == ("person", {"by": "kim", "reason": "looked at it"})
    assert row["committed_at"] == to_ms(world.now)
    assert "busy_until" not in row
    assert world.work() == [RunOutcome.DONE]


def test_an_effect_that_happened_may_have_no_result(world: World) -> None:
    asked = hold(world)
    key = effect(world, asked.run)
    deciding(world).happened(asked, None, **WHO)
    row = world.peek(key)
    assert row is not None
    assert decode(row["result"]) is None


def test_an_effect_that_several_events_share_is_committed_where_it_is(world: World) -> None:
    asked = hold(world)
    key = shared_effect(world, asked.run)
    deciding(world).happened(asked, "paid", **WHO)
    row = world.peek(key)
    assert row is not None
    assert (row["status"], decode(row["result"])) == ("committed", "paid")


def test_an_effect_whose_result_could_not_be_recorded_is_given_one(world: World) -> None:
    asked = hold(world)
    key = effect(world, asked.run, **committed(None), unrecorded="its result has 400 KB")
    deciding(world).happened(asked, {"id": "re_1"}, **WHO)
    row = world.peek(key)
    assert row is not None
    assert decode(row["result"]) == {"id": "re_1"}
    assert "unrecorded" not in row


def test_a_workers_own_commit_that_came_late_stands(world: World) -> None:
    asked = hold(world)
    key = effect(world, asked.run, **committed({"id": "the worker's"}))
    decision = deciding(world).happened(asked, {"id": "guessed"}, **WHO)
    assert (decision.outcome, decision.committed) == (ApprovalOutcome.APPROVED, False)
    row = world.peek(key)
    assert row is not None
    assert decode(row["result"]) == {"id": "the worker's"}


def test_so_does_one_that_comes_at_the_same_instant(world: World) -> None:
    asked = hold(world)
    key = effect(world, asked.run)
    committing = Race(world, lambda: effect(world, asked.run, **committed("the worker's")))
    assert deciding(world).happened(asked, "guessed", **WHO).committed is False
    assert committing.happened
    row = world.peek(key)
    assert row is not None
    assert decode(row["result"]) == "the worker's"


def test_that_it_happened_is_recorded_though_the_run_has_moved_on(world: World) -> None:
    asked = hold(world)
    key = effect(world, asked.run)
    Race(world, lambda: world.replay(event_ids=["evt-1"]))
    decision = deciding(world).happened(asked, "paid", **WHO)
    assert (decision.outcome, decision.committed) == (ApprovalOutcome.MOVED_ON, True)
    row = world.peek(key)
    assert row is not None
    assert row["status"] == "committed"


def test_one_that_another_event_has_started_anew_is_looked_at_again(world: World) -> None:
    asked = hold(world)
    effect(world, asked.run)
    Race(world, lambda: effect(world, asked.run, lease_id="lease-of-another"))
    with pytest.raises(NoDoubt, match="started again"):
        deciding(world).happened(asked, None, **WHO)
    assert world.run().status is Status.HELD


@pytest.mark.parametrize("state", ["failed", None])
def test_an_effect_that_was_not_done_cannot_have_happened(world: World, state: str | None) -> None:
    asked = hold(world)
    if state is not None:
        effect(world, asked.run, status=state)
    with pytest.raises(NoDoubt, match="the effect refund has not been done"):
        deciding(world).happened(asked, None, **WHO)
    assert world.run().status is Status.HELD
    assert world.rows("audit#") == []


def test_a_policy_does_not_happen(world: World) -> None:
    with pytest.raises(NoDoubt, match="not held for an effect"):
        deciding(world).happened(hold(world, subject="policy"), None, **WHO)


def test_a_result_that_cannot_be_recorded_changes_nothing(world: World) -> None:
    asked = hold(world)
    key = effect(world, asked.run)
    before = world.peek(key)
    with pytest.raises(Unstorable, match="300 KB"):
        deciding(world).happened(asked, "x" * 400_000, **WHO)
    assert world.peek(key) == before
    assert world.run().status is Status.HELD


# -- two at once


class Race:
    """Lets something happen between what a decision has read and what it writes."""

    def __init__(self, world: World, act: Callable[[], object]) -> None:
        self.happened = False
        plan, table = world.plan, world.table

        def meanwhile(service: str, operation: str) -> str | None:
            if operation == "UpdateItem" and not self.happened:
                self.happened = True
                act()
            return plan(service, operation)

        table.faults = meanwhile


def test_of_two_decisions_the_first_one_stands(world: World) -> None:
    asked = hold(world)
    deciding(world).deny(asked, by=person("ada"), reason="no")
    decision = deciding(world).approve(asked, **WHO)
    assert decision.outcome is ApprovalOutcome.MOVED_ON
    assert decision.run == world.run()
    assert world.run().last_error == "denied by ada: no"
    assert world.messages() == []


def test_a_denial_after_an_approval_is_too_late(world: World) -> None:
    asked = hold(world)
    deciding(world).approve(asked, by=person("ada"), reason="yes")
    decision = deciding(world).deny(asked, **WHO)
    assert decision.outcome is ApprovalOutcome.MOVED_ON
    assert world.work() == [RunOutcome.DONE]


def test_two_approvals_at_the_same_instant_are_one(world: World) -> None:
    asked = hold(world)
    first = deciding(world).approve(asked, **WHO)
    second = deciding(world).approve(asked, **WHO)
    assert (first.outcome, second.outcome) == (ApprovalOutcome.APPROVED, ApprovalOutcome.MOVED_ON)
    assert world.generations() == [1]


@pytest.mark.parametrize("decide", ["approve", "deny"])
def test_a_replay_at_the_same_instant_takes_the_hold_away(world: World, decide: str) -> None:
    asked = hold(world)
    replaying = Race(world, lambda: world.replay(event_ids=["evt-1"]))
    decision = getattr(deciding(world), decide)(asked, **WHO)
    assert replaying.happened
    assert decision.outcome is ApprovalOutcome.MOVED_ON
    assert world.run().status is Status.PENDING
    assert not world.run().approvals
    assert world.generations() == [1]
    assert world.work() == [RunOutcome.DONE]


def test_a_decision_at_the_same_instant_as_a_replay_stands(world: World) -> None:
    asked = hold(world)
    Race(world, lambda: deciding(world).deny(asked, **WHO))
    assert world.replay(event_ids=["evt-1"]).counts == {"finished": 1}
    assert world.run().status is Status.SKIPPED
    assert world.messages() == []


def test_a_hold_that_was_replayed_and_came_again_is_another_one(world: World) -> None:
    asked = hold(world)
    world.replay(event_ids=["evt-1"])
    again = hold_next(world)
    decision = deciding(world).approve(asked, **WHO)
    assert decision.outcome is ApprovalOutcome.MOVED_ON
    assert decision.run is not None
    assert ApprovalRequest(decision.run).id == again.id


def test_a_worker_cannot_take_a_held_run_from_a_person(world: World) -> None:
    world.deliver()
    (copy,) = world.queues["default"].bodies
    asked = hold_next(world)
    world.queues["default"].send([Outgoing(copy)])
    Race(world, world.work)
    assert deciding(world).approve(asked, **WHO).outcome is ApprovalOutcome.APPROVED
    assert world.work() == [RunOutcome.DONE]
    assert len(world.handled) == 1


def test_a_worker_that_takes_the_run_up_at_once_is_let(world: World) -> None:
    asked = hold(world)
    deciding(world).approve(asked, **WHO)
    world.claim_and_die(world.taken())
    assert deciding(world).deny(asked, **WHO).outcome is ApprovalOutcome.MOVED_ON
    assert world.run().status is Status.PROCESSING


def test_a_run_that_is_gone_cannot_be_decided(world: World) -> None:
    asked = hold(world)
    world.table.delete(run_key("acme", "evt-1", "acme.fulfil"))
    decision = deciding(world).approve(asked, **WHO)
    assert (decision.outcome, decision.run) == (ApprovalOutcome.MOVED_ON, None)


# -- calls that fail


@BOTH
@pytest.mark.parametrize("decide", ["approve", "deny"])
def test_a_decision_whose_write_failed_can_be_repeated(
    world: World, decide: str, fault: Fault
) -> None:
    asked = hold(world)
    world.plan.fail("UpdateItem", fault)
    with pytest.raises(Unavailable):
        getattr(deciding(world), decide)(asked, **WHO)
    getattr(deciding(world), decide)(asked, **WHO)
    world.run_until_quiet()
    expected = Status.DONE if decide == "approve" else Status.SKIPPED
    assert world.run().status is expected


@pytest.mark.parametrize("decide", ["approve", "deny"])
def test_an_earlier_try_of_the_same_call_is_recognised(world: World, decide: str) -> None:
    """The SDK repeats a call whose answer was lost, and meets what its first try wrote."""
    asked = hold(world)
    update, seen = world.table.update, []

    def twice(key: object, change: Change, *, when: object = None) -> object:
        seen.append(update(key, change, when=when))  # type: ignore[arg-type]
        return update(key, change, when=when)  # type: ignore[arg-type]

    world.table.update = twice  # type: ignore[method-assign,assignment]
    decision = getattr(deciding(world), decide)(asked, **WHO)
    assert decision.outcome in {ApprovalOutcome.APPROVED, ApprovalOutcome.DENIED}
    assert [row["sk"] for row in seen if row["sk"].startswith("run#")] == ["run#acme.fulfil"]


@BOTH
def test_a_commit_by_hand_whose_answer_was_lost_can_be_repeated(world: World, fault: Fault) -> None:
    asked = hold(world)
    key = effect(world, asked.run)
    world.plan.fail("UpdateItem", fault)
    with pytest.raises(Unavailable):
        deciding(world).happened(asked, "paid", **WHO)
    assert deciding(world).happened(asked, "paid", **WHO).outcome is ApprovalOutcome.APPROVED
    row = world.peek(key)
    assert row is not None
    assert decode(row["result"]) == "paid"


@pytest.mark.parametrize(("action", "status"), [("approve", Status.PENDING), ("deny", "skipped")])
def test_every_decision_leaves_an_audit_row(world: World, action: str, status: str) -> None:
    getattr(deciding(world), action)(hold(world), **WHO)
    (row,) = world.rows("audit#2026-01-01")
    assert (row["action"], row["by"], row["reason"]) == (action, "kim", "looked at it")
    assert row["event_ids"] == ["evt-1"]
    assert row["request"] == {
        "source": "acme",
        "handler": "acme.fulfil",
        "subject": SUBJECT,
        "fingerprint": FINGERPRINT,
    }
    assert row["counts"] == {"approved" if action == "approve" else "denied": 1}
    assert world.run().status == status


@pytest.mark.parametrize("action", ["approve", "deny"])
def test_a_decision_is_in_the_events_history_at_once(world: World, action: str) -> None:
    getattr(deciding(world), action)(hold(world), **WHO)
    [entry] = world.overview().actions
    assert (entry.action, entry.actor, entry.reason) == (action, WHO["by"], WHO["reason"])
    assert entry.at == world.now


@pytest.mark.parametrize("action", ["approve", "deny", "happened"])
def test_without_its_audit_row_nothing_is_decided(world: World, action: str) -> None:
    asked = hold(world)
    effect(world, asked.run)
    given = (asked, None) if action == "happened" else (asked,)
    world.plan.fail("PutItem")
    with pytest.raises(Unavailable):
        getattr(deciding(world), action)(*given, **WHO)
    assert world.run().status is Status.HELD


# -- while it waits


def test_a_held_run_waits_for_as_long_as_its_event_lives(world: World) -> None:
    hold(world)
    world.pass_minutes(90)
    assert world.run().status is Status.HELD


def test_a_held_run_is_alarmed_a_week_before_its_events_end(world: World) -> None:
    hold(world)
    world.clock.advance(days=28, seconds=61)
    assert world.reconcile().count(Action.LAST_CALL) == 1
    assert world.run().status is Status.HELD


def test_a_dead_run_is_no_hold(world: World) -> None:
    dead = world.dead(error=Permanent("422"))
    assert deciding(world).approve(ApprovalRequest(dead), **WHO).outcome is ApprovalOutcome.APPROVED
