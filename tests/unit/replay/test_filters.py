"""Filters of a replay: statuses, error class, tenant, and conditions on the body."""

import random
from typing import Any

import pytest

from tests.unit.support.world import World, handler, with_handlers
from webhook_inbox.domain.error_text import error_group
from webhook_inbox.domain.errors import Permanent, Transient, Unavailable
from webhook_inbox.domain.model import Status
from webhook_inbox.domain.ports import Change
from webhook_inbox.ledger.schema import event_key
from webhook_inbox.replay.body_condition import BODY_LIMIT, holds

DAY = "2026-01-01T00:00:00Z"


@pytest.fixture
def every_status() -> World:
    """One event in each status, named after it."""
    world = World(with_handlers(handler("acme.fulfil", "paid")))
    world.deliver("done")
    world.work()
    world.dead("dead_letter")
    world.fails("acme.fulfil", Transient("KeyError: 'total'"))
    world.deliver("failed")
    world.work()
    world.behaviours.clear()
    world.deliver("processing")
    world.claim_and_die(world.taken())
    world.dead("pending")
    world.replay(event_ids=["pending"])
    world.deliver("accepted")
    return world


def found(world: World, **filters: Any) -> list[str]:
    report = world.replay(dry_run=True, **filters)
    assert report.matched == len(report.sample)
    return sorted(run.event_id for run in report.sample)


@pytest.mark.parametrize("status", ["dead_letter", "failed", "pending"])
def test_runs_of_the_due_index_are_found_by_status(every_status: World, status: str) -> None:
    assert found(every_status, status=[status]) == [status]


@pytest.mark.parametrize("status", ["done", "processing", "accepted"])
def test_all_other_runs_are_found_by_status_and_time(every_status: World, status: str) -> None:
    assert found(every_status, status=[status], received_after=DAY) == [status]
    assert found(every_status, status=[status], received_after="2026-01-02") == []


def test_several_statuses_are_found_together(every_status: World) -> None:
    waiting = ["dead_letter", "failed", "pending"]
    assert found(every_status, status=waiting) == waiting
    both = found(every_status, status=["done", "dead_letter"], received_after=DAY)
    assert both == ["dead_letter", "done"]


def test_a_status_narrows_named_events(every_status: World) -> None:
    ids = ["done", "failed", "pending"]
    assert found(every_status, event_ids=ids, status=["failed"]) == ["failed"]


@pytest.mark.parametrize("limit", [1, 2, 3])
@pytest.mark.parametrize(
    "filters",
    [
        {"status": ["failed"]},
        {"status": ["failed", "dead_letter"]},
        {"status": ["failed", "accepted"], "received_after": DAY},
    ],
    ids=str,
)
def test_however_it_is_cut_each_open_run_is_replayed_once(
    filters: dict[str, Any], limit: int
) -> None:
    """A replayed run is pending, with a later place in the due index."""
    world = World(with_handlers(handler("acme.fulfil", "paid")))
    ids = [f"evt-{number}" for number in range(8)]
    world.fails("acme.fulfil", Transient("down"))
    for event_id in ids:
        world.deliver(event_id)
    world.work()
    report = world.replay(limit=limit, **filters)
    matched = report.matched
    while report.cursor:
        # A run whose retry fails meanwhile is listed again behind the cursor.
        world.work()
        report = world.replay(limit=limit, **filters, cursor=report.cursor)
        matched += report.matched
    assert matched == 8
    assert {len(world.run(event_id).replays) for event_id in ids} == {1}


def test_runs_found_by_time_are_replayed_oldest_event_first() -> None:
    world = World(with_handlers(handler("acme.fulfil", "paid")))
    ids = [f"evt-{number}" for number in range(30)]
    for event_id in ids:
        world.deliver(event_id)
        world.clock.advance(minutes=10)
    world.drop_messages()
    world.replay(status=["accepted"], received_after=DAY)
    assert [message["event_id"] for message in world.messages()] == ids


def test_a_window_of_all_times_ends_at_the_life_of_events(world: World) -> None:
    world.deliver("evt-1")
    world.plan.operations()
    assert found(world, status=["accepted"], received_after="0001-01-01") == ["evt-1"]
    assert len(world.plan.operations()) < 4 * 24 * 37


# -- errors


def test_runs_are_selected_by_the_class_of_their_error(world: World) -> None:
    for event_id, error in (("one", KeyError("total")), ("two", ValueError("KeyError: "))):
        world.fails("acme.fulfil", error)
        world.deliver(event_id)
        world.work()
    assert found(world, status=["failed"], error_class="KeyError") == ["one"]
    assert found(world, status=["failed"], error_class="keyerror") == []


def test_an_error_group_is_its_class_its_line_and_its_normalised_text(world: World) -> None:
    for event_id, error in (
        ("one", KeyError("a")),
        ("two", KeyError("b")),
        ("three", LookupError("c")),
        ("four", KeyError(4)),
    ):
        world.fails("acme.fulfil", error)
        world.deliver(event_id)
        world.work()
    run = world.run("one")
    group = error_group("KeyError", run.error_line, "KeyError: 'z'")
    assert found(world, status=["failed"], error_group=group.id) == ["one", "two"]
    elsewhere = group._replace(error_line="handlers/other.py:1")
    assert found(world, status=["failed"], error_group=elsewhere.id) == []


# -- tenants


def test_a_tenant_is_read_from_the_event_s_row(world: World) -> None:
    for event_id in ("one", "two"):
        world.dead(event_id)
    row = world.event_row("one")
    assert row is not None
    world.table.put({**row, "tenant": "t1"})
    assert found(world, tenant="t1") == ["one"]
    assert found(world, tenant="t2") == []


# -- conditions on the body


@pytest.mark.parametrize(
    ("expression", "body", "holds_"),
    [
        ("amount > `1000`", b'{"amount": 1001}', True),
        ("amount > `1000`", b'{"amount": 1000}', False),
        ("amount", b'{"amount": 0}', True),
        ("items", b'{"items": []}', False),
        ("lines[?sku=='a']", b'{"lines": [{"sku": "a"}]}', True),
        ("lines[?sku=='a']", b'{"lines": 5}', False),
        ("length(amount) > `1`", b'{"amount": 5}', False),
        ("'a' > 'b'", b"{}", False),
        ("amount", b"not JSON", False),
        ("amount", b"\xff\xfe", False),
        ("a", b"[" * 100_000, False),
    ],
)
def test_a_condition_holds_for_a_body(expression: str, body: bytes, holds_: bool) -> None:
    assert holds(expression, body) is holds_


def test_runs_are_selected_by_their_event_s_body(world: World) -> None:
    world.fails("acme.fulfil", Permanent("no"))
    for amount in range(5):
        world.deliver(f"evt-{amount}", body=b'{"amount": %d}' % amount)
    world.deliver("large", body=b'{"amount": 9, "pad": "%s"}' % (b"0123456789abcdef" * 4000))
    world.work()
    assert found(world, where="amount >= `3`") == ["evt-3", "evt-4", "large"]


def test_a_body_that_cannot_be_searched_is_counted(world: World) -> None:
    world.fails("acme.fulfil", Permanent("no"))
    world.deliver("huge", body=b'{"amount": 1, "pad": "%s"}' % (b"x" * BODY_LIMIT))
    large = b'{"amount": 1, "pad": "%s"}' % random.Random(1).randbytes(20_000).hex().encode()
    world.deliver("erased", body=large)
    world.deliver("lost", body=large)
    world.work()
    # Interrupted: the body is in the bucket still.
    world.table.update(event_key("acme", "erased"), Change(set={"erased_at": 1}))
    lost = world.event_row("lost")
    assert lost is not None
    world.blobs.delete(lost["body_ref"])
    report = world.replay(dry_run=True, where="amount")
    assert (report.matched, report.unsearched) == (0, 3)


def test_bodies_are_read_only_of_runs_that_fit_otherwise(world: World) -> None:
    world.fails("acme.fulfil", Permanent("no"))
    world.deliver("evt-1", body=b'{"amount": 1, "pad": "%s"}' % bytes(range(35, 91)) * 2)
    world.deliver("evt-2", body=b'{"amount": 1}')
    world.work()
    world.dead("other", error=Permanent("another error"))
    world.plan.operations()
    world.replay(dry_run=True, where="amount", error_contains="another error")
    assert world.plan.operations().count("GetItem") == 1


def test_a_bucket_that_fails_ends_the_search(world: World) -> None:
    world.fails("acme.fulfil", Permanent("no"))
    world.deliver("large", body=b'{"pad": "%s"}' % bytes(range(35, 91)) * 1000)
    world.work()
    row = world.event_row("large")
    assert row is not None
    world.table.put({**{k: v for k, v in row.items() if k != "body"}, "body_ref": "bodies/x"})
    world.plan.fail("GetObject")
    with pytest.raises(Unavailable):
        world.replay(where="pad")
    assert world.run("large").status is Status.DEAD_LETTER
