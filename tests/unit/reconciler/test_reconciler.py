"""The reconciler's pass: its order, its patience, its time; and its schedule's arithmetic."""

from datetime import UTC, datetime, timedelta

import pytest

from tests.unit.support.world import World
from webhook_inbox.domain.errors import Transient, Unavailable
from webhook_inbox.domain.model import Status
from webhook_inbox.domain.ports import Outgoing
from webhook_inbox.domain.timestamps import to_ms
from webhook_inbox.ledger.deadlines import (
    LAST_WAIT,
    RESENDS,
    SLACK,
    event_end,
    expiry_warning_at,
    next_resend,
    overdue_at,
)
from webhook_inbox.ledger.schema import WAKE, WATCH, due_buckets
from webhook_inbox.reconciler.report import ERRORS_SHOWN, PATIENCE, Action, ReconcilerReport

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)


def overdue(world: World, amount: int) -> None:
    """Makes runs that are to be sent again now."""
    for number in range(amount):
        world.script("acme.fulfil", Transient("down"))
        world.deliver(f"evt-{number}")
        world.work_once()
    world.queues["default"]._messages.clear()
    world.clock.advance(minutes=31, seconds=1)


# -- the pass


def test_with_nothing_to_do_it_does_nothing(world: World) -> None:
    for minute in (1, 5, 7, 37, 0):
        report = world.reconcile_at(minute)
        assert (report.counts, report.complete, report.errors) == ({}, True, [])
    assert {row["pk"] for row in world.table} == {"reconciler"}


def test_every_shard_is_read_every_minute(world: World) -> None:
    overdue(world, 40)
    shards = {row["due_bucket"] for row in world.table if "due_bucket" in row}
    assert shards == set(due_buckets("acme.fulfil", [WATCH]))
    assert world.reconcile().count(Action.RESENT) == 40


def test_another_handler_is_first_each_minute(world: World) -> None:
    firsts: list[str] = []
    query = world.table.query_index

    def noted(index: str, value: str, **parts: object) -> object:
        firsts.append(value)
        return query(index, value, **parts)  # type: ignore[arg-type]

    world.table.query_index = noted  # type: ignore[method-assign,assignment]
    seen = []
    for minute in range(1, 5):
        firsts.clear()
        world.reconcile_at(minute)
        due = [name for name in firsts if name.startswith((WAKE, WATCH))]
        seen.append(due[0].split("#")[1])
        assert sorted(due) == sorted(
            bucket for name in world.manifest.handlers for bucket in due_buckets(name)
        )
    assert seen[:2] == seen[2:]
    assert sorted(seen[:2]) == ["acme.fulfil", "github.announce"]


def test_out_of_time_it_stops_and_says_so(world: World) -> None:
    overdue(world, 5)
    report = world.reconcile(seconds=5)
    assert report.complete is False
    assert report.count(Action.RESENT) == 0
    assert world.reconcile().count(Action.RESENT) == 5


def test_time_that_runs_out_on_the_way_keeps_what_was_done(world: World) -> None:
    overdue(world, 20)
    update = world.table.update

    def slowly(*parts: object, **named: object) -> object:
        world.clock.advance(seconds=10)
        return update(*parts, **named)  # type: ignore[arg-type]

    world.table.update = slowly  # type: ignore[method-assign,assignment]
    report = world.reconcile(seconds=60)
    assert report.complete is False
    assert 0 < report.count(Action.RESENT) < 20


def test_an_unreadable_row_does_not_stop_the_pass(world: World) -> None:
    overdue(world, 6)
    world.alter("evt-3", status="no such status")
    report = world.reconcile()
    assert (report.count(Action.RESENT), report.count(Action.FAILED)) == (5, 1)
    assert "no such status" in report.errors[0]


def test_many_unreadable_rows_do_not_either(world: World) -> None:
    overdue(world, 2 * PATIENCE)
    for number in range(PATIENCE + 3):
        world.alter(f"evt-{number}", status="no such status")
    report = world.reconcile()
    assert report.count(Action.RESENT) == PATIENCE - 3
    assert len(report.errors) == ERRORS_SHOWN


def test_a_few_failing_calls_are_passed_over(world: World) -> None:
    overdue(world, 20)
    world.plan.fail("UpdateItem", times=PATIENCE - 1)
    report = world.reconcile()
    assert report.count(Action.FAILED) == PATIENCE - 1
    assert report.count(Action.RESENT) == 20 - (PATIENCE - 1)


def test_a_service_that_is_down_ends_the_pass(world: World) -> None:
    overdue(world, 20)
    world.plan.fail("UpdateItem", times=1000)
    with pytest.raises(Unavailable):
        world.reconcile()
    world.plan.heal()
    assert world.reconcile().count(Action.RESENT) == 20


def settled_copy(world: World) -> None:
    world.dead()
    world.alter(status="done")
    assert len(world.dlqs["default"]) == 1


@pytest.mark.parametrize("minute", [0, 17, 36, 37, 38, 59])
def test_the_dlqs_are_swept_once_an_hour(world: World, minute: int) -> None:
    world.reconcile_at(minute)
    settled_copy(world)
    world.clock.advance(minutes=58)
    assert world.reconcile().count(Action.DLQ_REMOVED) == 0
    world.clock.advance(minutes=2)
    assert world.reconcile().count(Action.DLQ_REMOVED) == 1


def test_a_sweep_tells_when_the_oldest_message_that_stays_was_sent(world: World) -> None:
    """Each sweep receives every message, and CloudWatch's age leaves out what is received often."""
    settled_copy(world)
    world.clock.advance(hours=1)
    world.dlqs["default"].send([Outgoing("foreign")])
    sent = world.now
    world.clock.advance(days=10)
    assert world.reconcile().oldest_dead_letter == sent
    world.clock.advance(minutes=1)
    assert world.reconcile().oldest_dead_letter is None


def test_a_schedule_that_skips_minutes_skips_no_sweep(world: World) -> None:
    settled_copy(world)
    (body,) = world.dlqs["default"].bodies
    removed = 0
    for _ in range(5):
        for _ in range(4):
            world.clock.advance(minutes=16, seconds=7)
            removed += world.reconcile().count(Action.DLQ_REMOVED)
        world.dlqs["default"].send([Outgoing(body)])
    assert removed == 5


def test_a_sweep_that_ran_out_of_time_continues_in_the_next_pass(world: World) -> None:
    settled_copy(world)
    (body,) = world.dlqs["default"].bodies
    world.dlqs["default"].send([Outgoing(body) for _ in range(299)])
    queue, receive = world.dlqs["default"], world.dlqs["default"].receive

    def slowly(limit: int, *, hidden_for: int) -> object:
        world.clock.advance(seconds=12)
        return receive(limit, hidden_for=hidden_for)

    queue.receive = slowly  # type: ignore[method-assign,assignment]
    first = world.reconcile().count(Action.DLQ_REMOVED)
    assert 0 < first < 300
    world.clock.advance(minutes=1)
    assert world.reconcile().count(Action.DLQ_REMOVED) == 300 - first


def test_a_sweep_that_failed_continues_in_the_next_pass(world: World) -> None:
    settled_copy(world)
    world.plan.fail("DeleteMessage")
    with pytest.raises(Unavailable):
        world.reconcile()
    # The message is hidden for five minutes.
    world.clock.advance(minutes=6)
    assert world.reconcile().count(Action.DLQ_REMOVED) == 1


def test_a_full_dlq_of_dead_runs_is_not_read_again_and_again(world: World) -> None:
    world.dlqs["default"].send([Outgoing(f"foreign {number}") for number in range(300)])
    queue, receive = world.dlqs["default"], world.dlqs["default"].receive
    calls = []

    def slowly(limit: int, *, hidden_for: int) -> object:
        calls.append(limit)
        world.clock.advance(seconds=12)
        return receive(limit, hidden_for=hidden_for)

    queue.receive = slowly  # type: ignore[method-assign,assignment]
    world.reconcile()
    read = len(calls)
    world.clock.advance(minutes=1)
    world.reconcile()
    assert len(calls) == read > 1


def test_two_passes_at_once_sweep_once(world: World) -> None:
    world.reconcile()
    world.clock.advance(hours=1)
    queue, inner = world.dlqs["default"], list[int]()
    receive = queue.receive

    def overlapping(limit: int, *, hidden_for: int) -> object:
        inner.append(len(inner))
        if len(inner) == 1:
            world.reconcile()
        return receive(limit, hidden_for=hidden_for)

    queue.receive = overlapping  # type: ignore[method-assign,assignment]
    world.reconcile()
    assert inner == [0]


def test_a_thousand_events_heal_from_a_queue_that_was_down(world: World) -> None:
    world.plan.fail("SendMessageBatch", times=300)
    for number in range(300):
        world.deliver(f"evt-{number}")
    world.pass_minutes(10)
    assert {world.run(f"evt-{number}").status for number in range(300)} == {Status.DONE}
    assert len(world.handled) == 300


# -- the report


def test_a_report_counts() -> None:
    report = ReconcilerReport()
    report.add(Action.RESENT)
    report.add(Action.RESENT, 2)
    assert report.counts == {"resent": 3}
    assert report.count(Action.RESUMED) == 0


def test_a_report_shows_the_first_errors_only() -> None:
    report = ReconcilerReport()

    def fail(number: int) -> None:
        raise ValueError(f"row {number}")

    for number in range(20):
        report.attempt(fail, number)
    assert report.errors == [f"ValueError: row {number}" for number in range(ERRORS_SHOWN)]
    assert report.count(Action.FAILED) == 20


# -- the schedule


def test_a_run_is_overdue_after_the_slack_and_the_first_resend() -> None:
    assert timedelta(minutes=12) == SLACK
    assert overdue_at(NOW) == NOW + timedelta(minutes=27)


@pytest.mark.parametrize(
    ("resends", "wait"),
    [
        (1, timedelta(hours=1)),
        (2, timedelta(hours=4)),
        (3, timedelta(days=1)),
        (4, timedelta(days=1)),
        (5, timedelta(days=1)),
        (6, LAST_WAIT),
        (7, LAST_WAIT),
    ],
)
def test_resends_come_ever_more_rarely(resends: int, wait: timedelta) -> None:
    assert next_resend(NOW, resends) == NOW + wait
    assert len(RESENDS) == 6


def test_a_runs_event_ends_a_week_before_its_row() -> None:
    assert event_end(NOW) == NOW - timedelta(days=7)
    assert expiry_warning_at(NOW) == NOW - timedelta(days=14)
    assert to_ms(event_end(NOW)) < to_ms(NOW)
