"""A replay with new keys: every effect and job of the run is performed again, once."""

from typing import Any

import pytest

from tests.unit.support.holding import deciding
from tests.unit.support.people import person
from tests.unit.support.world import World
from webhook_inbox import Context, Event
from webhook_inbox.client.next_action import next_steps
from webhook_inbox.domain.idempotency import versioned
from webhook_inbox.domain.model import Status
from webhook_inbox.handlers.approvals.hold import holds
from webhook_inbox.handlers.completions.receiver import CompletionOutcome
from webhook_inbox.replay.request import InvalidRequestError

NAME = "acme.fulfil"
AGAIN = {"event_ids": ["evt-1"], "handler": NAME, "reason": "the ERP was restored from a backup"}


class Downstream:
    """Records the keys that it receives."""

    def __init__(self) -> None:
        self.keys: list[str] = []

    def charge(self, key: str) -> dict[str, int]:
        self.keys.append(key)
        return {"charge": len(self.keys)}


def charging(world: World, **how: Any) -> Downstream:
    downstream = Downstream()

    def act(event: Event, ctx: Context) -> None:
        ctx.effect("charge", downstream.charge, **how)
        assert ctx.idempotency_key("charge") == downstream.keys[-1] or how

    world.behaviours[NAME] = act
    return downstream


def test_effects_are_performed_again_once_for_each_such_replay(world: World) -> None:
    downstream = charging(world)
    world.deliver()
    world.work()
    world.replay(**AGAIN, force=True)  # the same keys
    world.work()
    assert len(downstream.keys) == 1

    for performed in (2, 3):
        world.replay(**AGAIN, force=True, new_keys=True)
        world.work()
        world.replay(**AGAIN, force=True)
        world.work()
        assert len(downstream.keys) == performed
    assert downstream.keys[0] == f"charge:{NAME}:acme:evt-1"
    assert downstream.keys[1:] == [f"charge#{n}:{NAME}:acme:evt-1" for n in (1, 2)]
    rows = {effect["name"]: effect["status"] for effect in world.overview().effects}
    assert rows == {"charge": "committed", "charge#1": "committed", "charge#2": "committed"}


def test_the_operator_reads_that_effects_will_be_repeated(world: World) -> None:
    charging(world)
    world.deliver()
    world.work()
    world.replay(**AGAIN, force=True, new_keys=True)
    told = " ".join(next_steps(world.overview(), now=world.now))
    assert "new keys: charge began under earlier keys and is performed again" in told
    world.work()
    assert world.run().replays[-1]["new_keys"]


def test_effects_with_a_business_key_are_performed_again_for_this_run_only(world: World) -> None:
    downstream = charging(world, key="order-7")
    world.deliver()
    world.deliver("evt-2")
    world.work()
    assert downstream.keys == ["charge:order-7"]
    world.replay(**AGAIN, force=True, new_keys=True)
    world.work()
    world.replay(event_ids=["evt-2"], handler=NAME, reason="again", force=True)
    world.work()
    assert downstream.keys == ["charge:order-7", "charge#1:order-7"]


def test_an_approval_is_asked_for_again(world: World) -> None:
    downstream = charging(world, args={"amount": 42}, approve=True)
    world.deliver()
    world.work()
    deciding(world).approve(next(holds(world.ledger)), by=person("kim"), reason="agreed")
    world.work()
    assert len(downstream.keys) == 1

    world.replay(**AGAIN, force=True, new_keys=True)
    world.work()
    assert world.run().status is Status.HELD
    assert len(downstream.keys) == 1
    deciding(world).approve(next(holds(world.ledger)), by=person("kim"), reason="agreed again")
    world.work()
    assert world.run().status is Status.DONE
    assert len(downstream.keys) == 2


@pytest.mark.parametrize("ended", [True, False])
def test_jobs_are_started_again_and_an_old_token_ends_the_old_job_only(
    world: World, *, ended: bool
) -> None:
    tokens: list[str] = []
    results: list[Any] = []

    def act(event: Event, ctx: Context) -> None:
        results.append(ctx.wait_for("render", lambda key, token: tokens.append(str(token))))

    world.behaviours[NAME] = act
    world.deliver()
    world.work()
    completions = world.completions
    if ended:
        completions.by_token(tokens[0], b'{"result": "old"}')
        world.work()
    world.replay(**AGAIN, force=True, new_keys=True)
    world.work()
    assert len(tokens) == 2
    if not ended:
        completions.by_token(tokens[0], b'{"result": "old"}')
        world.work()
        assert results == []
    receipt = completions.by_token(tokens[1], b'{"result": "new"}')
    assert receipt.outcome is CompletionOutcome.RECORDED
    world.work()
    assert results[-1] == "new"


@pytest.mark.parametrize("missing", ["event_ids", "handler", "reason"])
def test_new_keys_need_names_and_a_reason(world: World, missing: str) -> None:
    asked = {name: value for name, value in AGAIN.items() if name != missing}
    with pytest.raises(InvalidRequestError, match="new_keys needs"):
        world.replay(**asked, new_keys=True)


def test_no_two_names_and_versions_are_equal() -> None:
    assert versioned("charge", 0) == "charge"
    assert len({versioned(name, n) for name in ("charge", "charge:1") for n in range(12)}) == 24
