"""A policy decides before a handler: it allows, denies, or asks a person."""

from typing import Any

import pytest

from tests.unit.support.world import World
from webhook_inbox import Deny, Held, Hold, Permanent, Router, Skipped, all_of, require_agent
from webhook_inbox.handlers.policies import enforce
from webhook_inbox.testing import Fake, Inbox


class Sender:
    def __init__(self, agent: str) -> None:
        self.agent = agent


def approval(hold: Hold) -> dict[str, dict[str, Any]]:
    """Returns what a person's approval of a hold leaves in the run."""
    with pytest.raises(Held) as held:
        enforce(hold, {})
    return {"policy": {"by": "ann", "fingerprint": held.value.fingerprint}}


def test_none_allows() -> None:
    enforce(None, {})


def test_a_denial_says_why() -> None:
    with pytest.raises(Skipped, match=r"^denied: not on Sundays$"):
        enforce(Deny("not on Sundays"), {})


def test_a_hold_asks_and_what_was_approved_stays_so() -> None:
    hold = Hold("a lot", shows="20000 EUR")
    with pytest.raises(Held, match=r"^a lot$") as held:
        enforce(hold, {})
    assert (held.value.subject, held.value.shows) == ("policy", "20000 EUR")
    enforce(hold, approval(hold))


@pytest.mark.parametrize("other", [Hold("a lot", shows="30000 EUR"), Hold("too much")])
def test_an_approval_is_for_what_the_person_saw(other: Hold) -> None:
    with pytest.raises(Held):
        enforce(other, approval(Hold("a lot", shows="20000 EUR")))
    with pytest.raises(Held):
        enforce(other, {"handler": approval(other)["policy"]})


def test_a_denial_is_not_overruled_by_an_earlier_approval() -> None:
    with pytest.raises(Skipped):
        enforce(Deny("no"), approval(Hold("no")))


@pytest.mark.parametrize("verdict", [True, False, "deny", 0, object(), Deny, Held("x")])
def test_anything_else_is_no_verdict(verdict: object) -> None:
    """A policy that returns False by mistake must not let everything through."""
    with pytest.raises(Permanent, match=r"return None, Deny\(…\) or Hold\(…\)"):
        enforce(verdict, {})


def test_an_agent_may_be_required() -> None:
    policy = require_agent("planner", "buyer")
    assert policy(Sender("buyer"), None) is None
    for stranger in ("Buyer", "", "planner2"):
        assert isinstance(policy(Sender(stranger), None), Deny)


def test_of_several_policies_the_first_objection_counts() -> None:
    asked: list[str] = []

    def says(name: str, verdict: Any) -> Any:
        def policy(_: Any, __: Any) -> Any:
            asked.append(name)
            return verdict

        return policy

    denies, holds = Deny("no"), Hold("well")
    assert all_of(says("a", None), says("b", holds), says("c", denies))(None, None) is holds
    assert asked == ["a", "b"]
    assert all_of()(None, None) is None


def test_an_unnamed_sender_is_skipped_with_the_reason_where_an_agent_is_required() -> None:

    shop = Router("shop")
    calls: list[str] = []

    @shop.on("*", policy=require_agent("planner"))
    def act(event: Any, ctx: Any) -> None:
        calls.append(event.agent)

    inbox = Inbox(shop, destinations={"crm": Fake()})
    stranger = inbox.run("shop.act", {"n": 1}, event_type="x", agent="buyer")
    known = inbox.run("shop.act", {"n": 2}, event_type="x", agent="planner")
    assert (stranger.status, known.status) == ("skipped", "done")
    assert stranger.row.last_error == "denied: agent 'buyer' is not one of planner"
    assert calls == ["planner"]


def test_a_policy_that_fails_is_an_attempt_that_failed(world: World) -> None:
    world.fails("acme.fulfil", ValueError("the rules cannot be read"))
    world.deliver()
    world.work()
    assert world.run().last_error == "ValueError: the rules cannot be read"
