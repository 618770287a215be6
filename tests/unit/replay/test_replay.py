"""Replay: which runs, whether they may, and what becomes of them."""

import json
from collections.abc import Callable, Iterable
from dataclasses import fields, replace
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest

from tests.unit.support.world import World, handler, with_handlers
from webhook_inbox.adapters.memory import Fault
from webhook_inbox.domain.errors import Permanent, Transient, Unavailable
from webhook_inbox.domain.manifest import Order
from webhook_inbox.domain.model import Status
from webhook_inbox.domain.ports import InTurn, R, T
from webhook_inbox.domain.replay_report import ReplayReport, SampledRun
from webhook_inbox.queue.outcomes import RunOutcome
from webhook_inbox.replay.cursor import Cursor
from webhook_inbox.replay.replay import Replay

BOTH = pytest.mark.parametrize("fault", list(Fault))


# -- what a replay does


def test_a_dead_run_is_attempted_again(world: World) -> None:
    world.dead()
    report = world.replay()
    assert (report.matched, report.counts) == (1, {"replayed": 1})
    assert world.work() == [RunOutcome.DONE]
    assert world.run().status is Status.DONE


def test_it_begins_a_new_round_under_a_new_generation(world: World) -> None:
    world.dead()
    world.replay()
    run = world.run()
    assert (run.status, run.generation, run.attempts_in_round) == (Status.PENDING, 1, 0)
    assert run.attempt_count == 1
    assert world.generations() == [1]


def test_a_replayed_run_has_all_its_attempts_again(world: World) -> None:
    world.dead()
    world.fails("acme.fulfil", Transient("down"))
    world.replay()
    world.run_until_quiet()
    assert world.run().attempt_count == 1 + 3


def test_a_run_that_had_used_attempts_of_its_round_has_them_back(world: World) -> None:
    world.script("acme.fulfil", Transient("one"), Transient("two"))
    world.deliver()
    while world.row() is None or world.run().attempt_count < 2:
        world.work()
        world.clock.advance(seconds=60)
    world.fails("acme.fulfil", Transient("down"))
    world.replay(event_ids=["evt-1"])
    world.run_until_quiet()
    assert world.run().attempt_count == 2 + 3


def test_the_attempts_before_stay_in_its_history(world: World) -> None:
    world.dead()
    world.replay()
    world.work()
    assert [(a.number, a.outcome) for a in world.run().attempts] == [(1, "dead"), (2, "done")]


def test_who_replayed_it_when_and_why_is_kept_with_the_run(world: World) -> None:
    world.dead()
    world.replay(requested_by="kim", reason="CRM fixed")
    (entry,) = world.run().replays
    assert (entry["by"], entry["reason"]) == ("kim", "CRM fixed")


def test_the_last_ten_replays_are_kept(world: World) -> None:
    world.dead()
    for number in range(12):
        world.replay(event_ids=["evt-1"], reason=f"try {number}")
        world.clock.advance(seconds=1)
    reasons = [entry["reason"] for entry in world.run().replays]
    assert reasons == [f"try {number}" for number in range(2, 12)]


def test_every_replay_leaves_an_audit_row(world: World) -> None:
    world.replay(source="acme", requested_by="kim", reason="CRM fixed")
    (row,) = world.rows("audit#2026-01-01")
    assert (row["action"], row["by"], row["reason"]) == ("replay", "kim", "CRM fixed")
    assert row["request"]["source"] == "acme"


@pytest.mark.parametrize("named", [True, False])
def test_every_page_leaves_an_audit_row_with_its_cursor(world: World, named: bool) -> None:
    """A cursor proves no earlier page: a forged one left no row."""
    for number in range(3):
        world.dead(f"evt-{number}")
    ids = [f"evt-{number}" for number in range(3)]
    payload: dict[str, Any] = {"event_ids": ids} if named else {}
    first = world.replay(limit=1, **payload)
    world.replay(limit=1, cursor=first.cursor, requested_by="kim", **payload)
    world.replay(cursor=Cursor().encode(), requested_by="eve", **payload)
    rows = {row["by"]: row for row in world.rows("audit#")}
    assert set(rows) == {"", "kim", "eve"}
    assert rows["kim"]["request"]["cursor"] == first.cursor


@pytest.mark.parametrize(
    "payload",
    [
        {"event_ids": ["evt-2"], "handler": "acme.fulfil", "force": True},
        {"event_ids": ["evt-1"], "handler": "acme.notify", "force": True},
        {"source": "github"},
        {"error_contains": "timeout"},
        {},
    ],
    ids=str,
)
def test_a_cursor_selects_only_what_the_request_selects(
    world: World, payload: dict[str, Any]
) -> None:
    world.deliver("evt-1")
    world.work()
    forged = Cursor(again=(("acme", "evt-1", "acme.fulfil"),)).encode()
    report = world.replay(cursor=forged, **payload)
    assert report.counts.get("replayed", 0) == 0
    assert world.run("evt-1").generation == 0


def test_a_later_page_s_audit_names_the_events_from_its_cursor_on(world: World) -> None:
    ids = [f"evt-{number}" for number in range(150)]
    for event_id in ids:
        world.deliver(event_id)
    first = world.replay(event_ids=ids, limit=120, rate_per_second=500)
    world.clock.advance(seconds=1)
    world.replay(event_ids=ids, cursor=first.cursor, rate_per_second=500)
    early, late = sorted(world.rows("audit#"), key=lambda row: str(row["sk"]))
    assert early["event_ids"] == ids[:100]
    assert late["event_ids"] == ids[119:]


def test_the_messages_of_before_are_dropped(world: World) -> None:
    world.script("acme.fulfil", Transient("down", retry_after=timedelta(minutes=5)))
    world.deliver()
    world.work()
    assert world.generations() == [1]
    world.replay(event_ids=["evt-1"])
    assert world.generations() == [1, 2]
    assert world.work() == [RunOutcome.DONE]
    world.clock.advance(minutes=6)
    assert world.work() == [RunOutcome.DELETED]


@pytest.mark.parametrize("status", [Status.PENDING, Status.FAILED, Status.DEFERRED, Status.HELD])
def test_a_named_run_that_is_open_is_replayed(world: World, status: Status) -> None:
    world.deliver()
    world.claim_and_die(world.taken())
    world.alter(status=str(status), lease_id=None, claimed_until=None)
    assert world.replay(event_ids=["evt-1"]).counts == {"replayed": 1}
    assert world.work() == [RunOutcome.DONE]


def test_a_run_that_never_began_can_be_replayed(world: World) -> None:
    world.deliver()
    world.drop_messages()
    assert world.replay(event_ids=["evt-1"]).counts == {"replayed": 1}
    assert world.work() == [RunOutcome.DONE]
    assert world.run().attempt_count == 1


def test_the_first_message_of_a_run_that_was_replayed_before_it_began_is_dropped(
    world: World,
) -> None:
    world.deliver()
    world.replay(event_ids=["evt-1"])
    assert sorted(world.work()) == [RunOutcome.DELETED, RunOutcome.DONE]
    assert len(world.handled) == 1


def test_a_run_goes_to_the_lane_its_handler_has_now(world: World) -> None:
    world.dead()
    world.deploy(with_handlers(handler("acme.fulfil", lane="slow")))
    world.replay()
    assert [m["handler"] for m in world.messages("slow")] == ["acme.fulfil"]


def test_a_run_whose_handler_is_gone_goes_to_the_default_lane(world: World) -> None:
    world.dead()
    world.deploy(with_handlers(handler("acme.other")))
    world.replay()
    assert world.generations() == [1]


# -- what stands against it


def test_a_done_run_is_not_replayed(world: World) -> None:
    world.deliver()
    world.work()
    report = world.replay(event_ids=["evt-1"])
    assert report.counts == {"finished": 1}
    assert world.messages() == []


def test_a_done_run_that_is_forced_by_name_is_attempted_again(world: World) -> None:
    world.deliver()
    world.work()
    report = world.replay(event_ids=["evt-1"], handler="acme.fulfil", force=True)
    assert report.counts == {"replayed": 1}
    assert world.work() == [RunOutcome.DONE]
    assert len(world.handled) == 2


def test_a_forced_run_is_not_done_until_it_is_done_again(world: World) -> None:
    world.deliver()
    world.work()
    world.replay(event_ids=["evt-1"], handler="acme.fulfil", force=True)
    assert world.run().done_at is None


def test_a_live_lease_is_left_alone(world: World) -> None:
    world.deliver()
    world.claim_and_die(world.taken())
    before = world.row()
    assert world.replay(event_ids=["evt-1"]).counts == {"in_use": 1}
    assert world.row() == before


@pytest.mark.parametrize(("seconds", "outcome"), [(64, "in_use"), (69, "in_use"), (71, "replayed")])
def test_a_lease_is_live_until_it_is_over_on_every_clock(
    world: World, seconds: int, outcome: str
) -> None:
    world.deliver()
    world.claim_and_die(world.taken())
    world.clock.advance(seconds=seconds)
    assert world.replay(event_ids=["evt-1"]).counts == {outcome: 1}


def test_force_does_not_take_a_live_lease(world: World) -> None:
    world.deliver()
    world.claim_and_die(world.taken())
    report = world.replay(event_ids=["evt-1"], handler="acme.fulfil", force=True)
    assert report.counts == {"in_use": 1}


def test_an_id_without_an_event_is_missing(world: World) -> None:
    world.dead()
    report = world.replay(event_ids=["evt-0", "evt-1"])
    assert report.counts == {"missing": 1, "replayed": 1}


def test_an_event_without_handlers_is_neither_missing_nor_replayed(world: World) -> None:
    world.deliver(type_="refunded")
    report = world.replay(event_ids=["evt-1"])
    assert (report.matched, report.counts) == (0, {})


def test_a_run_whose_event_has_expired_is_not_replayed(world: World) -> None:
    world.dead()
    world.clock.advance(days=35, seconds=1)
    assert world.replay().counts == {"expired": 1}
    assert world.messages() == []


def test_a_long_id_is_found_by_what_the_provider_calls_it(world: World) -> None:
    world.deliver("x" * 600)
    assert world.replay(event_ids=["x" * 600]).counts == {"replayed": 1}


def test_a_run_that_changes_between_reading_and_resetting_is_in_use(world: World) -> None:
    world.dead()
    update, raced = world.table.update, []

    def overtaken(key: object, change: object, **parts: object) -> object:
        if not raced:
            raced.append(True)
            world.alter(status="processing", lease_id="x", claimed_until=4_000_000_000_000)
        return update(key, change, **parts)  # type: ignore[arg-type]

    world.table.update = overtaken  # type: ignore[method-assign,assignment]
    assert world.replay().counts == {"in_use": 1}


def test_of_two_operators_at_once_one_replays(world: World) -> None:
    world.dead()
    update, raced = world.table.update, []

    def overtaken(key: object, change: object, **parts: object) -> object:
        if not raced:
            raced.append(True)
            assert world.replay(requested_by="quick").counts == {"replayed": 1}
        return update(key, change, **parts)  # type: ignore[arg-type]

    world.table.update = overtaken  # type: ignore[method-assign,assignment]
    assert world.replay(requested_by="slow").counts == {"in_use": 1}
    assert world.generations() == [1]


def test_a_run_that_is_done_between_reading_and_resetting_is_finished(world: World) -> None:
    world.dead()
    update = world.table.update

    def overtaken(key: object, change: object, **parts: object) -> object:
        world.alter(status="done")
        return update(key, change, **parts)  # type: ignore[arg-type]

    world.table.update = overtaken  # type: ignore[method-assign,assignment]
    assert world.replay().counts == {"finished": 1}


# -- dry run


def test_a_dry_run_tells_what_would_happen_and_changes_nothing(world: World) -> None:
    world.dead()
    before = list(world.table)
    report = world.replay(dry_run=True)
    assert (report.dry_run, report.matched, report.counts) == (True, 1, {"would_replay": 1})
    assert list(world.table) == before
    assert world.messages() == []


def test_a_dry_run_tells_what_stands_against_it_too(world: World) -> None:
    world.deliver("done")
    world.work()
    world.deliver("busy")
    world.claim_and_die(world.taken())
    report = world.replay(event_ids=["done", "busy", "missing"], dry_run=True)
    assert report.counts == {"finished": 1, "in_use": 1, "missing": 1}


def test_the_sample_shows_what_the_runs_are_and_what_is_done_with_them(world: World) -> None:
    world.dead()
    assert world.replay(dry_run=True).sample == [
        SampledRun(
            source="acme",
            event_id="evt-1",
            handler="acme.fulfil",
            status="dead_letter",
            last_error="permanent: no such order",
            outcome="would_replay",
        )
    ]


def test_the_sample_is_bounded(world: World) -> None:
    for number in range(15):
        world.dead(f"evt-{number}")
    report = world.replay(dry_run=True)
    assert (report.matched, len(report.sample)) == (15, 10)


def test_a_dry_run_takes_no_time(world: World) -> None:
    for number in range(15):
        world.dead(f"evt-{number}")
    before = world.now
    world.replay(dry_run=True, rate_per_second=1)
    assert world.now == before


def test_a_report_is_json_data(world: World) -> None:
    world.dead()
    data = world.replay().to_data()
    assert set(data) == {field.name for field in fields(ReplayReport)} | {"estimate"}
    assert json.loads(json.dumps(data)) == data


# -- pace


def test_runs_are_sent_at_the_asked_rate(world: World) -> None:
    for number in range(20):
        world.dead(f"evt-{number}")
    before = world.now
    world.replay(rate_per_second=4)
    assert world.now - before == timedelta(seconds=5)


@pytest.mark.parametrize("rate", [3, 10, 77, 500])
def test_at_no_time_more_are_sent_than_the_rate_allows(world: World, rate: int) -> None:
    for number in range(230):
        world.dead(f"evt-{number}")
    started, sent = world.now, [0]
    send = world.queues["default"].send

    def counted(messages: Any, **parts: Any) -> Any:
        sent[0] += len(messages)
        assert sent[0] <= 1 + rate * (world.now - started).total_seconds() + 1e-3
        world.clock.advance(seconds=0.01)
        return send(messages, **parts)

    world.queues["default"].send = counted  # type: ignore[method-assign]
    world.replay(rate_per_second=rate)
    assert sent == [230]
    # No slower either: ten milliseconds a send hide in the pause between batches.
    taken = (world.now - started).total_seconds()
    assert 230 / rate - 0.001 <= taken <= 230 / rate * 1.02 + 0.1


def test_a_late_batch_does_not_let_the_next_ones_catch_up(world: World) -> None:
    for number in range(40):
        world.dead(f"evt-{number}")
    times: list[datetime] = []
    send = world.queues["default"].send

    def slow_once(messages: Any, **parts: Any) -> Any:
        times.append(world.now)
        if len(times) == 1:
            world.clock.advance(seconds=3)
        return send(messages, **parts)

    world.queues["default"].send = slow_once  # type: ignore[method-assign]
    world.replay(rate_per_second=50)
    between = [(b - a).total_seconds() for a, b in pairwise(times)]
    assert min(between[1:]) >= 10 / 50 - 1e-6


def test_finished_runs_do_not_use_up_the_rate(world: World) -> None:
    for number in range(20):
        world.deliver(f"evt-{number}")
    world.work()
    before = world.now
    world.replay(event_ids=[f"evt-{number}" for number in range(20)], rate_per_second=1)
    assert world.now == before


def test_the_default_rate_is_ten_a_second(world: World) -> None:
    for number in range(20):
        world.dead(f"evt-{number}")
    before = world.now
    world.replay()
    assert world.now - before == timedelta(seconds=2)


# -- failing calls


def test_a_run_that_could_not_be_sent_is_pending_and_said_to_be(world: World) -> None:
    world.dead()
    world.plan.fail("SendMessageBatch")
    assert world.replay().counts == {"unsent": 1}
    assert world.run().status is Status.PENDING


@BOTH
@pytest.mark.parametrize("begun", [True, False])
def test_a_run_that_could_not_be_sent_is_sent_by_the_reconciler(
    world: World, fault: Fault, begun: bool
) -> None:
    if begun:
        world.dead()
    else:
        world.deliver()
        world.drop_messages()
    world.plan.fail("SendMessageBatch", fault)
    world.replay(event_ids=["evt-1"])
    world.run_until_quiet()
    assert world.run().status is Status.DONE


@BOTH
@pytest.mark.parametrize("named", [True, False])
def test_a_reset_whose_call_fails_is_told_and_done_by_the_next_page(
    world: World, fault: Fault, named: bool
) -> None:
    world.dead()
    payload: dict[str, Any] = {"event_ids": ["evt-1"]} if named else {}
    world.plan.fail("UpdateItem", fault)
    first = world.replay(**payload)
    assert (first.matched, first.counts, first.cursor is None) == (0, {}, False)
    assert "UpdateItem" in first.failed
    second = world.replay(**payload, cursor=first.cursor)
    assert (second.counts, second.failed, second.cursor) == ({"replayed": 1}, "", None)
    world.run_until_quiet()
    assert world.run().status is Status.DONE


@BOTH
@pytest.mark.parametrize("named", [True, False])
def test_a_page_that_fails_midway_tells_what_it_did_and_the_next_does_the_rest(
    world: World, fault: Fault, named: bool
) -> None:
    ids = [f"evt-{number}" for number in range(30)]
    for event_id in ids:
        world.dead(event_id)
    payload: dict[str, Any] = {"rate_per_second": 50, **({"event_ids": ids} if named else {})}
    world.plan.fail("UpdateItem", fault, skip=13, times=1)
    first = world.replay(**payload)
    # The runs of its batch are finished; no later batch begins.
    assert (first.matched, first.counts) == (19, {"replayed": 19})
    second = world.replay(**payload, cursor=first.cursor)
    assert (second.counts, second.cursor) == ({"replayed": 11}, None)
    world.run_until_quiet()
    assert [world.run(event_id).attempt_count for event_id in ids] == [2] * 30


def test_a_forced_page_that_fails_midway_forces_no_run_twice(world: World) -> None:
    ids = [f"evt-{number}" for number in range(8)]
    for event_id in ids:
        world.deliver(event_id)
    world.work()
    forced: dict[str, Any] = {"event_ids": ids, "handler": "acme.fulfil", "force": True}
    world.plan.fail("UpdateItem", skip=2, times=1)
    first = world.replay(**forced, rate_per_second=40)
    world.work()
    world.replay(**forced, rate_per_second=40, cursor=first.cursor)
    world.work()
    assert [world.run(event_id).attempt_count for event_id in ids] == [2] * 8


def test_a_ledger_that_cannot_be_read_midway_ends_the_page_with_a_cursor(world: World) -> None:
    for number in range(150):
        world.dead(f"evt-{number}")
    world.plan.fail("BatchGetItem", skip=1, times=1)
    first = world.replay(rate_per_second=500)
    assert first.counts == {"replayed": 100}
    assert "BatchGetItem" in first.failed
    second = world.replay(rate_per_second=500, cursor=first.cursor)
    assert (second.counts, second.cursor) == ({"replayed": 50}, None)


def test_a_ledger_that_cannot_be_read_at_all_is_an_error(world: World) -> None:
    world.plan.fail("Query")
    with pytest.raises(Unavailable):
        world.replay()


def test_a_queue_that_fails_ends_the_page_after_the_batch(world: World) -> None:
    for number in range(30):
        world.dead(f"evt-{number}")
    world.plan.fail("SendMessageBatch", times=2)
    report = world.replay(rate_per_second=100)
    assert (report.counts, report.cursor is None) == ({"unsent": 20}, False)
    assert "SQS" in report.failed
    world.plan.heal()
    assert world.replay(cursor=report.cursor).counts == {"replayed": 10}


# -- batches and threads


class CountingParallel(InTurn):
    """Records how many calls may be made at the same time."""

    def __init__(self) -> None:
        self.sizes: list[int] = []

    def map(self, work: Callable[[T], R], subjects: Iterable[T]) -> list[R]:
        listed = list(subjects)
        self.sizes.append(len(listed))
        return super().map(work, listed)


def counting(world: World) -> CountingParallel:
    """Lets the world replay with a double that counts."""
    parallel = CountingParallel()
    world.replayer = Replay(world.manifest, replace(world.ports, parallel=parallel))
    return parallel


def test_a_batch_is_reset_and_sent_at_the_same_time_ten_messages_each(world: World) -> None:
    for number in range(250):
        world.dead(f"evt-{number}")
    parallel = counting(world)
    world.plan.operations()
    world.replay(rate_per_second=500)
    assert parallel.sizes == [100, 10, 100, 10, 50, 5]
    assert world.plan.operations().count("SendMessageBatch") == 25


def test_a_fifo_lane_s_messages_are_sent_by_one_thread_in_the_order_of_their_events() -> None:
    world = World(
        with_handlers(
            handler("acme.fulfil", lane="serial", order=Order(kind="serial", ordering_key="k"))
        )
    )
    world.fails("acme.fulfil", Permanent("no"))
    for number in range(25):
        world.deliver(f"evt-{number}", body=b'{"k":"a","n":%d}' % number)
        world.clock.advance(seconds=2)
    world.work()
    parallel = counting(world)
    world.replay(rate_per_second=500)
    assert parallel.sizes == [25, 1]
    assert [m["event_id"] for m in world.messages("serial")] == [f"evt-{n}" for n in range(25)]


def test_behind_a_message_that_a_fifo_lane_refuses_none_is_sent() -> None:
    world = World(
        with_handlers(
            handler("acme.fulfil", lane="serial", order=Order(kind="serial", ordering_key="k"))
        )
    )
    world.fails("acme.fulfil", Permanent("no"))
    for number in range(25):
        world.deliver(f"evt-{number}", body=b'{"k":"a","n":%d}' % number)
        world.clock.advance(seconds=2)
    world.work()
    world.plan.fail("SendMessageBatch", skip=1, times=1)
    report = world.replay(rate_per_second=500)
    assert report.counts == {"replayed": 10, "unsent": 15}
    assert [m["event_id"] for m in world.messages("serial")] == [f"evt-{n}" for n in range(10)]


def test_a_reset_that_the_sdk_tried_twice_is_ours(world: World) -> None:
    world.dead()
    update = world.table.update

    def twice(key: object, change: object, **parts: object) -> object:
        update(key, change, **parts)  # type: ignore[arg-type]
        return update(key, change, **parts)  # type: ignore[arg-type]

    world.table.update = twice  # type: ignore[method-assign,assignment]
    assert world.replay(requested_by="kim").counts == {"replayed": 1}
    assert world.run().generation == 1
    assert len(world.run().replays) == 1


def test_without_its_audit_row_nothing_is_replayed(world: World) -> None:
    world.dead()
    world.plan.fail("PutItem")
    with pytest.raises(Unavailable):
        world.replay()
    assert world.run().status is Status.DEAD_LETTER


# -- DLQ copies


def test_the_dlq_copy_of_a_replayed_run_is_removed(world: World) -> None:
    world.dead()
    assert world.replay().dlq_removed == 1
    assert len(world.dlqs["default"]) == 0


def test_the_dlq_copy_of_another_dead_run_stays_and_is_visible(world: World) -> None:
    world.dead("evt-1")
    world.dead("evt-2")
    world.replay(event_ids=["evt-1"])
    assert ["evt-2" in body for body in world.dlqs["default"].bodies] == [True]
    assert world.redrive() == 1


def test_a_dry_run_leaves_the_dlq_alone(world: World) -> None:
    world.dead()
    world.replay(dry_run=True)
    assert len(world.dlqs["default"]) == 1


@BOTH
@pytest.mark.parametrize("operation", ["ReceiveMessage", "DeleteMessage"])
def test_a_dlq_that_fails_does_not_hide_what_was_replayed(
    world: World, operation: str, fault: Fault
) -> None:
    world.dead()
    world.plan.fail(operation, fault, service="sqs")
    assert world.replay().counts == {"replayed": 1}


def test_a_permanent_failure_after_a_replay_is_dead_again(world: World) -> None:
    world.dead()
    world.fails("acme.fulfil", Permanent("still no such order"))
    world.clock.advance(seconds=1)
    world.replay()
    world.work()
    assert world.run().status is Status.DEAD_LETTER
    assert len(world.dlqs["default"]) == 1
