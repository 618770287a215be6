"""`approve=Approval(…)`: an effect starts once enough people approved its arguments."""

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from tests.unit.support.approving import BOARD, FINANCE, ApprovingWorld
from webhook_inbox import Approval
from webhook_inbox.adapters.memory import Fault
from webhook_inbox.domain.model import RequestState, Status
from webhook_inbox.handlers.approvals.messages import Announcement, slack, teams
from webhook_inbox.handlers.approvals.request_row import DecisionOutcome, RequestRows, Word

Format = Callable[[Announcement, str], tuple[str, Any]]
ARGUMENTS = '{"cents": 20000, "order": "o-1"}'


def test_an_effect_waits_for_two_people() -> None:
    world = ApprovingWorld()
    world.asked()
    assert (world.status, world.refunds) == (Status.HELD, [])

    assert world.says("ann") is DecisionOutcome.RECORDED
    world.work()
    assert (world.status, world.refunds) == (Status.HELD, [])

    assert world.says("bob") is DecisionOutcome.RECORDED
    world.work()
    assert (world.status, world.refunds) == (Status.DONE, [world.args])


def test_the_request_shows_what_will_be_done() -> None:
    world = ApprovingWorld()
    world.asked()
    seen = world.view()
    assert seen.question == "Approve refund of acme.fulfil for acme evt-1?"
    assert (seen.effect, seen.arguments, seen.count) == ("refund", ARGUMENTS, 2)
    assert seen.people == {"ann": None, "bob": None}
    assert (seen.state, seen.expires_at - seen.opened_at) == (
        RequestState.OPEN,
        timedelta(days=2),
    )


def test_a_person_is_counted_once() -> None:
    world = ApprovingWorld()
    world.asked()
    assert world.says("ann") is DecisionOutcome.RECORDED
    assert world.says("ann") is DecisionOutcome.REPEATED
    assert world.says("ann", Word.DENY) is DecisionOutcome.CONFLICT
    world.wait(hours=3)
    assert (world.status, world.refunds) == (Status.HELD, [])
    assert world.view().people["bob"] is None


def test_one_denial_ends_the_run() -> None:
    world = ApprovingWorld()
    world.asked()
    world.says("ann")
    assert world.says("bob", Word.DENY, "too much") is DecisionOutcome.RECORDED
    assert (world.status, world.run().skip_reason) == (Status.SKIPPED, "denied")
    assert world.run().last_error == "denied by bob: too much"
    assert world.says("ann", Word.DENY) is DecisionOutcome.CONFLICT
    world.wait(hours=1)
    assert world.refunds == []


def test_no_person_decides_after_the_end() -> None:
    world = ApprovingWorld(FINANCE, approval=Approval(by="finance"))
    world.asked()
    world.says("ann")
    assert world.says("bob", Word.DENY) is DecisionOutcome.CLOSED
    world.work()
    assert len(world.refunds) == 1


def test_only_the_people_of_the_group_decide() -> None:
    world = ApprovingWorld(FINANCE, BOARD)
    request = world.asked()
    assert world.says("eve") is DecisionOutcome.UNKNOWN
    unknown = type(request.address)("acme", "evt-2", "acme.fulfil", "effect:refund", "0" * 64, 1)
    assert world.requests.decide(unknown, "ann", Word.APPROVE, "") is DecisionOutcome.UNKNOWN
    assert world.requests.view(unknown) is None


def test_an_address_with_another_fingerprint_of_the_same_row_is_unknown() -> None:
    world = ApprovingWorld()
    address = world.asked().address
    forged = type(address)(
        *(address.source, address.event_id, address.handler, address.subject),
        address.fingerprint[:16] + "0" * 48,
        1,
    )
    assert world.requests.view(forged) is None
    assert world.requests.decide(forged, "ann", Word.APPROVE, "") is DecisionOutcome.UNKNOWN


# -- other arguments


def test_a_change_of_the_arguments_voids_the_request() -> None:
    world = ApprovingWorld()
    old = world.asked()
    world.says("ann")
    world.args = {"order": "o-1", "cents": 2_000_000}
    world.replay(event_ids=("evt-1",))
    world.work()

    assert world.requests.decide(old.address, "bob", Word.APPROVE, "") is DecisionOutcome.VOID
    assert world.view().arguments == '{"cents": 2000000, "order": "o-1"}'
    assert world.view().people == {"ann": None, "bob": None}
    assert (world.status, world.refunds) == (Status.HELD, [])


def test_the_first_arguments_again_are_asked_again() -> None:
    world = ApprovingWorld()
    first = world.asked()
    world.says("ann")
    for cents in (1, 20_000):
        world.args = {"order": "o-1", "cents": cents}
        world.replay(event_ids=("evt-1",))
        world.work()
    again = world.request()
    assert again.address.round == first.address.round + 1
    assert again.decisions == {}


def test_an_approval_covers_no_arguments_whose_hash_begins_alike() -> None:
    world = ApprovingWorld(approval=Approval(by="finance"))
    seen = world.asked()
    world.says("ann")
    # A sender finds two orders whose hashes have the same 64 bits within an hour.
    alike = replace(seen.address, fingerprint=seen.address.fingerprint[:16] + "0" * 48)
    opened = RequestRows(world.table).open(alike, {"fingerprint": alike.fingerprint}, world.now)
    assert opened.row["fingerprint"] == alike.fingerprint


def test_an_approval_of_fewer_people_does_not_cover_more() -> None:
    world = ApprovingWorld(approval=Approval(by="finance"))
    world.asked()
    world.approval = Approval(by="finance", count=2)
    world.says("ann")
    world.work()
    assert (world.status, world.refunds) == (Status.HELD, [])
    assert (world.request().address.round, world.request().count) == (2, 2)


# -- the end of a request


def test_an_undecided_request_expires_and_a_replay_asks_anew() -> None:
    world = ApprovingWorld()
    first = world.asked()
    world.says("ann")
    world.look_at(first.until + timedelta(minutes=1))
    assert world.status is Status.DEAD_LETTER
    assert world.run().last_error == (
        f"permanent: approval expired: undecided by {first.until:%Y-%m-%dT%H:%M:%SZ}"
    )
    assert world.requests.view(first.address).state is RequestState.EXPIRED  # type: ignore[union-attr]
    assert world.requests.decide(first.address, "bob", Word.APPROVE, "") is DecisionOutcome.EXPIRED

    world.replay(event_ids=("evt-1",))
    world.work()
    assert (world.status, world.request().address.round) == (Status.HELD, 2)
    assert world.request().decisions == {}
    assert world.requests.decide(first.address, "bob", Word.APPROVE, "") is DecisionOutcome.EXPIRED
    world.says("ann")
    world.says("bob")
    world.work()
    assert (world.status, len(world.refunds)) == (Status.DONE, 1)


def test_no_person_decides_past_the_end_before_the_run_looks() -> None:
    world = ApprovingWorld()
    request = world.asked()
    world.clock.advance(seconds=timedelta(days=2).total_seconds())
    assert world.view().state is RequestState.EXPIRED
    assert world.says("ann") is DecisionOutcome.EXPIRED
    assert world.request().decisions == {}
    assert request.state is RequestState.OPEN


def test_a_denied_run_that_is_forced_is_asked_again() -> None:
    world = ApprovingWorld()
    world.asked()
    world.says("ann", Word.DENY)
    world.clock.advance(seconds=1)
    world.replay(event_ids=("evt-1",), handler="acme.fulfil", force=True, reason="agreed")
    world.work()
    assert (world.status, world.request().address.round) == (Status.HELD, 2)


def test_an_approval_survives_a_failure_and_a_replay() -> None:
    world = ApprovingWorld(max_attempts=1)
    world.asked()
    world.says("ann")
    world.says("bob")
    world.fails("acme.fulfil", RuntimeError("down"))
    world.work()
    assert world.status is Status.DEAD_LETTER
    world.behaviours["acme.fulfil"] = world.refund
    world.clock.advance(seconds=1)
    world.replay(event_ids=("evt-1",))
    world.work()
    assert (world.status, len(world.refunds)) == (Status.DONE, 1)


def test_a_finished_effect_asks_no_person() -> None:
    world = ApprovingWorld()
    world.asked()
    world.says("ann")
    world.says("bob")
    world.work()
    world.args = {"order": "o-1", "cents": 20_000}
    world.clock.advance(seconds=1)
    world.replay(event_ids=("evt-1",), handler="acme.fulfil", force=True, reason="agreed")
    world.work()
    assert (world.status, len(world.refunds)) == (Status.DONE, 1)
    assert len(world.chat.sent) == 2


def test_a_request_whose_run_ended_is_void() -> None:
    world = ApprovingWorld()
    world.asked()
    world.behaviours["acme.fulfil"] = lambda *_: None
    world.replay(event_ids=("evt-1",))
    world.work()
    assert world.status is Status.DONE
    assert world.view().state is RequestState.VOID
    assert world.says("ann") is DecisionOutcome.VOID


# -- escalation


ESCALATING = ("finance", {"ann": "chat:/ann", "bob": "chat:/bob"}, 4 * 3600.0, "board")


def test_a_repeated_message_has_the_key_of_the_first() -> None:
    """A destination that knows keys then sends it once, as the sink of `webhookctl dev` does."""
    world = ApprovingWorld()
    world.plan.fail("UpdateItem", Fault.BEFORE, skip=1, times=3)
    world.asked()
    world.plan.heal()
    world.wait(hours=2)

    assert len(world.chat.keys) > len(set(world.chat.keys)) == 2
    assert {path for path, _ in world.chat.sent} == {"/ann", "/bob"}


@pytest.mark.parametrize("form", [slack, teams])
def test_a_message_shows_every_character_of_the_arguments(form: Format) -> None:
    world = ApprovingWorld()
    world.args = {"cents": "\u202e00001\u202c", "to": "a\u200bb"}

    _, sent = form(
        Announcement(world.asked(), "ann", "https://inbox.example/approvals/v1.a.b"), "U1"
    )

    text = json.dumps(sent, ensure_ascii=False)
    assert not {"\u202e", "\u202c", "\u200b"} & set(text)
    assert "\\u202e00001" in text


def test_an_unanswered_request_escalates_once() -> None:
    world = ApprovingWorld(type(FINANCE)(*ESCALATING), BOARD)
    request = world.asked()
    world.look_at(request.opened_at + timedelta(hours=3, minutes=59))
    assert world.says("eve") is DecisionOutcome.UNKNOWN
    world.look_at(request.opened_at + timedelta(hours=4, minutes=1))
    assert world.chat.paths == ["/ann", "/bob", "/eve"]
    world.wait(hours=2)
    assert world.chat.paths == ["/ann", "/bob", "/eve"]
    assert world.history.count("escalate by webhook-inbox") == 1

    assert world.says("eve") is DecisionOutcome.RECORDED
    assert world.says("ann") is DecisionOutcome.RECORDED
    world.work()
    assert (world.status, len(world.refunds)) == (Status.DONE, 1)


def test_a_request_expires_after_its_escalation() -> None:
    world = ApprovingWorld(type(FINANCE)(*ESCALATING), BOARD)
    request = world.asked()
    world.look_at(request.opened_at + timedelta(hours=4, minutes=1))
    world.look_at(request.until + timedelta(minutes=1))
    assert (world.status, world.request().state) == (Status.DEAD_LETTER, RequestState.EXPIRED)


# -- the handler


def test_a_handler_that_catches_the_request_is_held_all_the_same() -> None:
    world = ApprovingWorld()

    def catching(event: object, ctx: object) -> None:
        try:
            world.refund(event, ctx)  # type: ignore[arg-type]
        except Exception:  # noqa: BLE001 - what a careless handler does
            return

    world.behaviours["acme.fulfil"] = catching
    world.asked()
    assert (world.status, world.chat.paths) == (Status.HELD, ["/ann", "/bob"])
    world.says("ann", Word.DENY)
    assert world.status is Status.SKIPPED


@pytest.mark.parametrize(
    ("approval", "args", "why"),
    [
        (Approval(by="board"), {}, "inbox.toml has no [approvers.board]"),
        (Approval(by="finance"), None, "approve=Approval(…) needs args=…"),
        (Approval(by="finance", count=0), {}, "approve: count=0; use 1 or more"),
        (Approval(by="finance", expires="soon"), {}, 'expires: "soon" is not a duration'),
        (Approval(by="finance", expires="29d"), {}, "use one minute to 28 days"),
        (Approval(by="finance"), {"a": "x" * 17_000}, "the limit is 16384"),
    ],
)
def test_a_request_that_cannot_be_asked_is_a_dead_letter(
    approval: Approval, args: object, why: str
) -> None:
    world = ApprovingWorld(approval=approval)
    world.args = args
    world.deliver()
    world.work()
    assert world.status is Status.DEAD_LETTER
    assert why in world.run().last_error


def test_what_happens_is_in_the_events_history() -> None:
    world = ApprovingWorld()
    world.asked()
    world.clock.advance(seconds=1)
    world.says("ann")
    world.clock.advance(seconds=1)
    world.says("bob", Word.DENY)
    assert sorted(world.history[:3]) == [
        "announce by webhook-inbox",
        "announce by webhook-inbox",
        "ask by webhook-inbox",
    ]
    assert world.history[3:] == ["approve by ann", "deny by bob"]
