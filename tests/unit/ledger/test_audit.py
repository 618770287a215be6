"""The audit: rows before actions, counts after them, and the search."""

from datetime import timedelta
from typing import Any

import pytest

from tests.unit.support.people import person
from tests.unit.support.world import World
from webhook_inbox.domain.audit import Actor, AuditEntry, EventName, Proof
from webhook_inbox.domain.errors import Unavailable
from webhook_inbox.ledger import audit
from webhook_inbox.ledger.audit import AUDIT_LIFE, AuditRecord

KIM = Actor("arn:aws:sts::1:assumed-role/ops/kim", Proof.STS, on_behalf_of="Ada")


def record(world: World, **changed: Any) -> AuditRecord:
    given: dict[str, Any] = {"action": "skip", "by": KIM, "reason": "obsolete", "request": {}}
    return audit.record(world.table, world.randomness, now=world.now, **given | changed)


def found(world: World, **window: timedelta) -> list[AuditEntry]:
    since = world.now - window.get("since", timedelta(hours=24))
    until = world.now + timedelta(seconds=1)
    return list(audit.find(world.table, since=since, until=until, now=world.now))


# -- writing


def test_an_action_is_read_as_it_was_written(world: World) -> None:
    record(world, request={"source": "acme"}, event_ids=["a", "b"], forced=True)
    [entry] = found(world)
    assert (entry.action, entry.actor, entry.reason) == ("skip", KIM, "obsolete")
    assert (entry.at, entry.request, entry.event_ids) == (world.now, {"source": "acme"}, ["a", "b"])
    assert entry.forced


def test_an_action_without_counts_was_begun_and_not_finished(world: World) -> None:
    recorded = record(world)
    assert [entry.counts for entry in found(world)] == [None]
    recorded.conclude({"skipped": 1})
    assert [entry.counts for entry in found(world)] == [{"skipped": 1}]


def test_an_action_that_changed_nothing_is_finished(world: World) -> None:
    record(world).conclude({})
    assert [entry.counts for entry in found(world)] == [{}]


def test_counts_that_cannot_be_written_fail_no_action(world: World) -> None:
    recorded = record(world)
    world.plan.fail("UpdateItem")
    recorded.conclude({"skipped": 1})
    assert [entry.counts for entry in found(world)] == [None]


def test_counts_do_not_bring_an_expired_row_back(world: World) -> None:
    recorded = record(world)
    world.table.delete(recorded.keys[0])
    recorded.conclude({"skipped": 1})
    assert found(world) == []


def test_an_action_on_one_event_is_in_the_events_history(world: World) -> None:
    world.deliver()
    record(world, event=EventName("acme", "evt-1")).conclude({"skipped": 1})
    [shown] = world.overview().actions
    [listed] = found(world)
    assert (shown.at, shown.actor, shown.counts) == (listed.at, listed.actor, listed.counts)
    assert listed.event_ids == ["evt-1"]


@pytest.mark.parametrize("skip", [0, 1])
def test_without_both_rows_there_is_no_action(world: World, skip: int) -> None:
    world.deliver()
    world.plan.fail("PutItem", skip=skip)
    with pytest.raises(Unavailable):
        record(world, event=EventName("acme", "evt-1"))


# -- the actor


@pytest.mark.parametrize(
    ("actor", "text"),
    [
        (Actor("kim", Proof.LOCAL), "kim"),
        (Actor("arn:kim", Proof.STS), "arn:kim"),
        (Actor("arn:bot", Proof.STS, on_behalf_of="Kim"), "arn:bot for Kim"),
        (Actor("kim", Proof.CLAIMED, request_id="r-1"), "kim (unverified)"),
        (Actor("", Proof.CLAIMED), "unknown (unverified)"),
    ],
)
def test_an_actor_is_one_text(actor: Actor, text: str) -> None:
    assert str(actor) == text
    assert Actor.of(actor.attributes()) == actor


# -- the row of a caller


def begun(world: World, place: str, **changed: Any) -> Actor | None:
    given: dict[str, Any] = {"name": KIM.name, "request": {"source": "acme"}, "event_ids": ()}
    return audit.begun(world.table, place, action="skip", **given | changed)


def test_the_row_of_a_caller_names_the_actor(world: World) -> None:
    place = record(world, request={"source": "acme"}).place
    assert begun(world, place) == KIM


STRANGE: list[dict[str, Any]] = [
    {"name": "eve"},
    {"request": {"source": "github"}},
    {"event_ids": ("evt-1",)},
]


@pytest.mark.parametrize("changed", STRANGE)
def test_the_row_of_another_action_names_no_actor(world: World, changed: dict[str, Any]) -> None:
    place = record(world, request={"source": "acme"}).place
    assert begun(world, place, **changed) is None


@pytest.mark.parametrize("place", ["", "/", "nonsense", "2026-01-01/0000#x"])
def test_a_row_that_does_not_exist_names_no_actor(world: World, place: str) -> None:
    assert begun(world, place) is None


def test_a_finished_row_names_no_actor(world: World) -> None:
    recorded = record(world, request={"source": "acme"})
    recorded.conclude({})
    assert begun(world, recorded.place) is None


# -- the search


def test_the_newest_action_is_first_across_days(world: World) -> None:
    for action in ("one", "two", "three"):
        record(world, action=action, by=person("kim"))
        world.clock.advance(hours=11)
    assert [entry.action for entry in found(world)] == ["three", "two"]
    assert [e.action for e in found(world, since=timedelta(days=3))] == ["three", "two", "one"]


def test_the_end_of_the_window_is_excluded(world: World) -> None:
    record(world)
    before = audit.find(
        world.table, since=world.now - timedelta(days=1), until=world.now, now=world.now
    )
    assert list(before) == []


def test_an_expired_action_is_not_found(world: World) -> None:
    record(world)
    world.clock.advance(seconds=AUDIT_LIFE.total_seconds() + 1)
    assert found(world, since=timedelta(days=365)) == []
