"""Handlers that are paused and resumed: what workers hear of it, and when."""

from datetime import timedelta

import pytest

from tests.unit.support.people import person
from tests.unit.support.world import World
from webhook_inbox.adapters.memory import Fault
from webhook_inbox.domain.audit import Actor
from webhook_inbox.domain.conditions import Condition
from webhook_inbox.domain.errors import Unavailable
from webhook_inbox.domain.ports import Change, Item, Key
from webhook_inbox.domain.timestamps import to_seconds
from webhook_inbox.ledger.pauses import (
    CACHE_TTL,
    RESUMING,
    HandlerPauses,
    PauseRequest,
    Subject,
    TenantPauses,
    control_key,
    controls,
    pause,
    resume,
)

BOTH = pytest.mark.parametrize("fault", list(Fault))
NAME = "acme.fulfil"


def wish(
    world: World, name: str = NAME, *, by: Actor | None = None, reason: str = "the CRM moves"
) -> PauseRequest:
    return PauseRequest(name, by or person("kim"), reason, world.now)


# -- what people say


def test_a_paused_handler_is_known_with_who_paused_it_when_and_why(world: World) -> None:
    assert pause(world.table, world.randomness, wish(world)) is None
    control = controls(world.table)[Subject.HANDLER, NAME]
    assert (control.name, control.paused) == (NAME, True)
    assert (control.by, control.reason) == ("kim", "the CRM moves")
    assert control.at == control.changed_at == world.now


def test_a_handler_without_a_pause_has_none(world: World) -> None:
    assert controls(world.table) == {}


def test_a_resumed_handler_is_known_with_who_resumed_it_and_when(world: World) -> None:
    paused_at = world.now
    pause(world.table, world.randomness, wish(world))
    world.clock.advance(minutes=5)
    assert resume(world.table, world.randomness, wish(world, by=person("ada"), reason="moved"))
    control = controls(world.table)[Subject.HANDLER, NAME]
    assert not control.paused
    assert (control.by, control.reason) == ("ada", "moved")
    assert (control.at, control.changed_at) == (paused_at, world.now)


def test_a_second_pause_meets_the_first_one(world: World) -> None:
    pause(world.table, world.randomness, wish(world))
    world.clock.advance(minutes=5)
    before = pause(world.table, world.randomness, wish(world, by=person("ada"), reason="another"))
    assert before is not None
    assert (before.by, before.reason) == ("kim", "the CRM moves")
    assert controls(world.table)[Subject.HANDLER, NAME] == before


def test_a_resumed_handler_can_be_paused_again(world: World) -> None:
    pause(world.table, world.randomness, wish(world))
    resume(world.table, world.randomness, wish(world))
    world.clock.advance(minutes=5)
    assert pause(world.table, world.randomness, wish(world, reason="again")) is None
    assert controls(world.table)[Subject.HANDLER, NAME].at == world.now


def test_what_is_not_paused_cannot_be_resumed(world: World) -> None:
    assert not resume(world.table, world.randomness, wish(world))
    assert world.rows("control") == []


def test_of_two_who_resume_one_has_done_it(world: World) -> None:
    pause(world.table, world.randomness, wish(world))
    assert resume(world.table, world.randomness, wish(world, by=person("ada")))
    assert not resume(world.table, world.randomness, wish(world, by=person("kim")))
    assert controls(world.table)[Subject.HANDLER, NAME].by == "ada"


@pytest.mark.parametrize(("minutes", "lately"), [(0, True), (60, True), (61, False)])
def test_a_resumption_is_lately_for_a_while(world: World, minutes: int, lately: bool) -> None:
    pause(world.table, world.randomness, wish(world))
    resume(world.table, world.randomness, wish(world))
    world.clock.advance(minutes=minutes)
    control = controls(world.table)[Subject.HANDLER, NAME]
    assert control.was_resumed(since=world.now - timedelta(hours=1)) is lately


def test_a_paused_handler_was_not_resumed(world: World) -> None:
    pause(world.table, world.randomness, wish(world))
    assert not controls(world.table)[Subject.HANDLER, NAME].was_resumed(
        since=world.now - timedelta(hours=1)
    )


@pytest.mark.parametrize("act", [pause, resume])
def test_either_leaves_an_audit_row(world: World, act: object) -> None:
    assert callable(act)
    act(world.table, world.randomness, wish(world))
    (row,) = world.rows("audit#2026-01-01")
    assert row["action"] == act.__name__
    assert (row["by"], row["reason"]) == ("kim", "the CRM moves")
    assert row["request"] == {"handler": NAME}
    assert row["counts"] == {"paused" if act is pause else "unchanged": 1}


def test_without_its_audit_row_nothing_is_paused(world: World) -> None:
    world.plan.fail("PutItem")
    with pytest.raises(Unavailable):
        pause(world.table, world.randomness, wish(world))
    assert controls(world.table) == {}


@BOTH
def test_a_pause_whose_write_failed_can_be_repeated(world: World, fault: Fault) -> None:
    world.plan.fail("UpdateItem", fault)
    with pytest.raises(Unavailable):
        pause(world.table, world.randomness, wish(world))
    assert pause(world.table, world.randomness, wish(world)) is None
    assert controls(world.table)[Subject.HANDLER, NAME].paused


@pytest.mark.parametrize("act", ["pause", "resume"])
def test_an_earlier_try_of_the_same_call_is_recognised(world: World, act: str) -> None:
    """The SDK repeats a call whose answer was lost, and meets what its first try wrote."""
    if act == "resume":
        pause(world.table, world.randomness, wish(world, reason="before"))
    update = world.table.update

    def twice(key: Key, change: Change, *, when: Condition | None = None) -> Item:
        update(key, change, when=when)
        return update(key, change, when=when)

    world.table.update = twice  # type: ignore[method-assign]
    if act == "pause":
        assert pause(world.table, world.randomness, wish(world)) is None
    else:
        assert resume(world.table, world.randomness, wish(world))


# -- what a worker hears


def test_a_worker_is_told_why_a_handler_is_paused(world: World) -> None:
    pause(world.table, world.randomness, wish(world))
    worker = HandlerPauses(world.table, world.clock)
    assert worker.paused(NAME) == "the CRM moves"
    assert worker.paused("acme.other") is None


def test_a_resumed_handler_is_not_paused(world: World) -> None:
    pause(world.table, world.randomness, wish(world))
    resume(world.table, world.randomness, wish(world))
    assert HandlerPauses(world.table, world.clock).paused(NAME) is None


@pytest.mark.parametrize("paused_first", [True, False])
def test_a_worker_hears_of_a_change_within_five_seconds(world: World, paused_first: bool) -> None:
    worker = HandlerPauses(world.table, world.clock)
    if paused_first:
        pause(world.table, world.randomness, wish(world))
    before = worker.paused(NAME)
    (resume if paused_first else pause)(world.table, world.randomness, wish(world))
    world.clock.advance(seconds=CACHE_TTL.total_seconds() - 0.001)
    assert worker.paused(NAME) == before
    world.clock.advance(seconds=0.001)
    assert worker.paused(NAME) != before


def test_a_worker_asks_once_in_five_seconds_for_each_handler(world: World) -> None:
    worker = HandlerPauses(world.table, world.clock)
    world.plan.operations()
    for _ in range(10):
        worker.paused(NAME)
        worker.paused("acme.other")
        world.clock.advance(seconds=0.49)
    assert world.plan.operations() == ["GetItem", "GetItem"]


def test_where_the_ledger_does_not_answer_nothing_is_paused(world: World) -> None:
    pause(world.table, world.randomness, wish(world))
    worker = HandlerPauses(world.table, world.clock)
    world.plan.fail("GetItem")
    assert worker.paused(NAME) is None


def test_it_is_asked_again_five_seconds_later(world: World) -> None:
    pause(world.table, world.randomness, wish(world))
    worker = HandlerPauses(world.table, world.clock)
    world.plan.fail("GetItem")
    worker.paused(NAME)
    world.clock.advance(seconds=5)
    assert worker.paused(NAME) == "the CRM moves"


def test_a_pause_that_is_known_stands_while_the_ledger_does_not_answer(world: World) -> None:
    pause(world.table, world.randomness, wish(world))
    worker = HandlerPauses(world.table, world.clock)
    worker.paused(NAME)
    world.plan.fail("GetItem", times=100)
    world.clock.advance(minutes=5)
    assert worker.paused(NAME) == "the CRM moves"


def test_control_rows_do_not_expire(world: World) -> None:
    pause(world.table, world.randomness, wish(world))
    row = world.peek(control_key(NAME))
    assert row is not None
    assert "expires_at" not in row


# -- tenants


def tenant(world: World, name: str = "acct_7", *, reason: str = "a flood") -> PauseRequest:
    return PauseRequest(name, person("kim"), reason, world.now, Subject.TENANT)


def test_a_tenant_and_a_handler_of_one_name_are_paused_apart(world: World) -> None:
    pause(world.table, world.randomness, tenant(world, NAME))
    assert list(controls(world.table)) == [(Subject.TENANT, NAME)]
    assert HandlerPauses(world.table, world.clock).paused(NAME) is None
    assert TenantPauses(world.table, world.clock).paused(NAME) == "a flood"
    (row,) = world.rows("audit#2026-01-01")
    assert (row["action"], row["request"]) == ("pause", {"tenant": NAME})


def test_a_worker_reads_the_tenants_once_in_five_seconds_however_many(world: World) -> None:
    for name in ("acct_1", "acct_2"):
        pause(world.table, world.randomness, tenant(world, name, reason=name))
    pause(world.table, world.randomness, tenant(world, "acct_3"))
    resume(world.table, world.randomness, tenant(world, "acct_3"))
    worker = TenantPauses(world.table, world.clock)
    world.plan.operations()
    for _ in range(10):
        names = ("acct_1", "acct_2", "acct_3", "acct_4")
        assert [worker.paused(name) for name in names] == ["acct_1", "acct_2", None, None]
        world.clock.advance(seconds=0.49)
    assert world.plan.operations() == ["Query"]
    resume(world.table, world.randomness, tenant(world, "acct_1"))
    world.clock.advance(seconds=0.1)
    assert worker.paused("acct_1") is None


def test_a_run_without_a_tenant_reads_nothing(world: World) -> None:
    worker = TenantPauses(world.table, world.clock)
    world.plan.operations()
    assert worker.paused("") is None
    assert world.plan.operations() == []


def test_while_the_ledger_does_not_answer_the_known_tenants_stay_paused(world: World) -> None:
    pause(world.table, world.randomness, tenant(world))
    worker, fresh = (TenantPauses(world.table, world.clock) for _ in range(2))
    worker.paused("acct_7")
    world.clock.advance(minutes=5)
    world.plan.fail("Query", times=2)
    assert worker.paused("acct_7") == "a flood"
    assert fresh.paused("acct_7") is None
    world.clock.advance(seconds=5)
    assert fresh.paused("acct_7") == "a flood"


def test_only_the_row_of_a_resumed_tenant_expires(world: World) -> None:
    pause(world.table, world.randomness, tenant(world))
    key = control_key("acct_7", Subject.TENANT)
    assert "expires_at" not in (world.peek(key) or {})
    resume(world.table, world.randomness, tenant(world))
    row = world.peek(key)
    assert row is not None
    assert row["expires_at"] > to_seconds(world.now + RESUMING)
    pause(world.table, world.randomness, tenant(world))
    assert "expires_at" not in (world.peek(key) or {})
