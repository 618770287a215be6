"""Effects that a person decides about, from the handler's call to what the operator is told."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from tests.unit.support.holding import deciding
from tests.unit.support.people import person
from tests.unit.support.world import World
from webhook_inbox import Context, Event, Transient
from webhook_inbox.client.next_action import next_steps
from webhook_inbox.domain.model import ApprovalOutcome, Status
from webhook_inbox.handlers.approvals.hold import ApprovalRequest, holds
from webhook_inbox.queue.outcomes import RunOutcome

WHO = {"by": person("kim"), "reason": "looked at it"}
NAME = "acme.fulfil"


class Downstream:
    """The downstream of the handler's effect; it fails as told, after it has done its work."""

    def __init__(self) -> None:
        self.keys: list[str] = []
        self.results: list[Any] = []
        self.failing = False

    def refund(self, key: str) -> dict[str, int]:
        self.keys.append(key)
        if self.failing:
            raise TimeoutError("no answer")
        return {"refund": len(self.keys)}


def refunding(world: World, **how: Any) -> Downstream:
    """Lets the handler make one refund, as told."""
    downstream = Downstream()

    def act(event: Event, ctx: Context) -> None:
        downstream.results.append(ctx.effect("refund", downstream.refund, **how))

    world.behaviours[NAME] = act
    return downstream


def only_hold(world: World) -> ApprovalRequest:
    (found,) = holds(world.ledger)
    return found


def told(world: World) -> str:
    """Returns what an operator is told of the event."""
    return " ".join(next_steps(world.overview(), now=world.now))


# -- a handler that catches everything


@pytest.mark.parametrize("how", [{"approve": True}, {"in_doubt": "hold"}])
def test_a_hold_that_a_handler_swallows_holds_its_run_all_the_same(how: dict[str, Any]) -> None:
    world = World()
    downstream = Downstream()
    downstream.failing = "in_doubt" in how
    after: list[int] = []

    def act(event: Event, ctx: Context) -> None:
        try:
            ctx.effect("refund", downstream.refund, **how)
        except TimeoutError:
            raise
        except Exception:  # noqa: BLE001 - as handlers are written
            pass
        after.append(ctx.attempt)

    world.behaviours[NAME] = act
    world.deliver()
    world.work()
    world.clock.advance(minutes=1)
    world.work()

    assert world.run().status is Status.HELD
    assert only_hold(world).subject == "effect:refund"
    assert len(after) == 1
    downstream.failing = False
    deciding(world).approve(only_hold(world), **WHO)
    world.work()
    assert world.run().status is Status.DONE
    assert len(downstream.keys) == 1 + ("in_doubt" in how)


# -- approval


def test_an_effect_that_wants_approval_happens_once_it_is_given(world: World) -> None:
    downstream = refunding(world, args={"amount": 42}, approve=True)
    world.deliver()
    assert world.work() == [RunOutcome.HELD]
    assert downstream.keys == []
    assert only_hold(world).shows == '{"amount": 42}'
    assert "Effects: retry-safe, side effect not committed." in told(world)

    deciding(world).approve(only_hold(world), **WHO)

    assert world.work() == [RunOutcome.DONE]
    assert downstream.results == [{"refund": 1}]


def test_an_effect_that_is_denied_never_happens(world: World) -> None:
    downstream = refunding(world, args={"amount": 42}, approve=True)
    world.deliver()
    world.work()
    deciding(world).deny(only_hold(world), **WHO)
    world.run_until_quiet()
    assert downstream.keys == []
    assert world.run().status is Status.SKIPPED


def test_an_approval_of_one_amount_is_none_of_another(world: World) -> None:
    refunding(world, args={"amount": 42}, approve=True)
    world.deliver()
    world.work()
    downstream = refunding(world, args={"amount": 4200}, approve=True)  # a new deployment
    deciding(world).approve(only_hold(world), **WHO)
    assert world.work() == [RunOutcome.HELD]
    assert downstream.keys == []
    assert only_hold(world).shows == '{"amount": 4200}'


# -- doubt


def doubtful(world: World, **how: Any) -> tuple[Downstream, ApprovalRequest]:
    """Brings a run to be held for a refund whose outcome is unknown."""
    downstream = refunding(world, in_doubt="hold", **how)
    downstream.failing = True
    world.deliver()
    world.work()
    world.clock.advance(minutes=10)
    world.work()
    assert world.run().status is Status.HELD
    downstream.failing = False
    return downstream, only_hold(world)


def test_in_doubt_the_operator_is_told_of_three_answers(world: World) -> None:
    _, asked = doubtful(world)
    said = told(world)
    for answer in ("approve", "deny"):
        command = f"webhookctl hold {answer} evt-1 --source acme --handler {NAME} --hold {asked.id}"
        assert command in said
    assert "--happened --result JSON" in said
    assert "in doubt since 2026-01-01T00:00:00Z: refund started and did not commit (last" in said


def test_approved_it_is_done_again_under_the_same_key(world: World) -> None:
    downstream, asked = doubtful(world)
    deciding(world).approve(asked, **WHO)
    assert world.work() == [RunOutcome.DONE]
    assert len(downstream.keys) == 2
    assert len(set(downstream.keys)) == 1


def test_an_approval_is_for_one_doubt_and_not_for_the_next(world: World) -> None:
    downstream, asked = doubtful(world)
    downstream.failing = True
    deciding(world).approve(asked, **WHO)
    world.work()
    world.clock.advance(minutes=10)
    world.work()
    assert len(downstream.keys) == 2
    assert only_hold(world).id != asked.id
    assert deciding(world).approve(asked, **WHO).outcome is ApprovalOutcome.MOVED_ON


def test_one_that_happened_is_not_repeated_and_the_handler_is_given_its_result(
    world: World,
) -> None:
    downstream, asked = doubtful(world)
    deciding(world).happened(asked, {"refund": 7}, **WHO)
    assert world.work() == [RunOutcome.DONE]
    assert len(downstream.keys) == 1
    assert downstream.results == [{"refund": 7}]


def test_denied_its_effect_stays_in_doubt_and_is_not_repeated(world: World) -> None:
    downstream, asked = doubtful(world)
    deciding(world).deny(asked, **WHO)
    world.run_until_quiet()
    assert len(downstream.keys) == 1
    (row,) = world.overview().effects
    assert row["status"] == "started"


def test_beyond_its_keys_lifetime_it_is_held_and_says_so(world: World) -> None:
    downstream = refunding(world, key_lifetime=timedelta(minutes=30))
    downstream.failing = True
    world.deliver()
    world.work()
    assert "did not commit (last error: TimeoutError: no answer); its" in told(world)
    assert "its key is honoured until 2026-01-01T00:30:00Z: a retry that ends" in told(world)
    world.drop_messages()
    world.clock.advance(hours=2)
    assert "T00:00:00Z, beyond its key's lifetime: refund" in told(world)
    world.run_until_quiet()
    assert world.run().status is Status.HELD
    assert len(downstream.keys) == 1


def test_one_that_wants_approval_and_is_in_doubt_is_decided_once_for_each(world: World) -> None:
    downstream = refunding(world, args={"amount": 42}, approve=True, in_doubt="hold")
    downstream.failing = True
    world.deliver()
    world.work()
    deciding(world).approve(only_hold(world), **WHO)
    world.work()
    world.clock.advance(minutes=10)
    world.work()
    assert only_hold(world).fingerprint.startswith("doubt:")
    downstream.failing = False
    deciding(world).approve(only_hold(world), **WHO)
    assert world.work() == [RunOutcome.DONE]
    assert len(downstream.keys) == 2


def test_other_arguments_than_before_are_held_until_they_are_approved(world: World) -> None:
    first = refunding(world, args={"amount": 42})
    world.behaviours[NAME] = _then_fails(world.behaviours[NAME])
    world.deliver()
    world.work()
    refunding(world, args={"amount": 99})  # a new deployment
    world.clock.advance(minutes=10)
    assert world.work() == [RunOutcome.HELD]
    deciding(world).approve(only_hold(world), **WHO)
    assert world.work() == [RunOutcome.DONE]
    assert len(first.keys) == 1


def _then_fails(act: Callable[[Event, Context], None]) -> Callable[[Event, Context], None]:
    def work(event: Event, ctx: Context) -> None:
        act(event, ctx)
        raise Transient("after the effect")

    return work


# -- what a business key shares


def test_a_shared_effect_said_to_have_happened_is_repeated_by_no_event(world: World) -> None:
    downstream, asked = doubtful(world, key="pay-7")
    deciding(world).happened(asked, {"refund": 7}, **WHO)
    world.deliver("evt-2")
    world.work()
    assert len(downstream.keys) == 1
    assert downstream.results == [{"refund": 7}, {"refund": 7}]


@pytest.mark.parametrize("answer", ["approve", "deny"])
def test_every_answer_ends_the_wait(world: World, answer: str) -> None:
    _, asked = doubtful(world)
    getattr(deciding(world), answer)(asked, **WHO)
    world.run_until_quiet()
    assert list(holds(world.ledger)) == []
