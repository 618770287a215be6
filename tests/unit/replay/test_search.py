"""Which runs a replay names; and its cursor, which neither skips nor repeats any."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest

from tests.unit.support.world import World, handler, with_handlers
from webhook_inbox.domain.errors import Deferred, Permanent, Transient
from webhook_inbox.domain.model import Status
from webhook_inbox.domain.replay_report import ReplayReport
from webhook_inbox.replay.replay import ANSWER_MARGIN
from webhook_inbox.replay.request import InvalidRequestError


@pytest.fixture
def graveyard() -> World:
    """Dead runs of two sources, three handlers, two types and three days."""
    world = World(
        with_handlers(
            handler("acme.fulfil", "paid", "refunded"),
            handler("acme.mail", "paid"),
            handler("github.announce", source="github"),
        )
    )
    world.fails("acme.fulfil", Permanent("422 no such order"))
    world.fails("acme.mail", Permanent("mailbox full"))
    world.fails("github.announce", Permanent("422 archived"))
    for day, (event_id, source, type_) in enumerate(
        [("a-1", "acme", "paid"), ("a-2", "acme", "refunded"), ("g-1", "github", "issues")]
    ):
        world.deliver(event_id, source=source, type_=type_, body=b'{"day":%d}' % day)
        world.clock.advance(days=1)
    world.work()
    return world


def found(world: World, **filters: Any) -> set[tuple[str, str]]:
    sample = world.replay(dry_run=True, **filters).sample
    return {(run.event_id, run.handler) for run in sample}


FULFIL_1, FULFIL_2 = ("a-1", "acme.fulfil"), ("a-2", "acme.fulfil")
MAIL, ANNOUNCE = ("a-1", "acme.mail"), ("g-1", "github.announce")


@pytest.mark.parametrize(
    ("filters", "wanted"),
    [
        ({}, {FULFIL_1, FULFIL_2, MAIL, ANNOUNCE}),
        ({"source": "acme"}, {FULFIL_1, FULFIL_2, MAIL}),
        ({"source": "nobody"}, set()),
        ({"type": "paid"}, {FULFIL_1, MAIL}),
        ({"type": "issues*"}, {ANNOUNCE}),
        ({"type": "Paid"}, set()),
        ({"handler": "acme.fulfil"}, {FULFIL_1, FULFIL_2}),
        ({"error_contains": "422"}, {FULFIL_1, FULFIL_2, ANNOUNCE}),
        ({"error_contains": "mailbox"}, {MAIL}),
        ({"received_before": "2026-01-02T00:00:00Z"}, {FULFIL_1, MAIL}),
        ({"received_after": "2026-01-03T00:00:00"}, {ANNOUNCE}),
        ({"received_after": "2026-01-02", "received_before": "2026-01-03"}, {FULFIL_2}),
        ({"received_after": "2026-01-02T09:00:00+09:00", "source": "acme"}, {FULFIL_2}),
        ({"source": "acme", "type": "paid", "handler": "acme.mail"}, {MAIL}),
        ({"event_ids": ["a-1"]}, {FULFIL_1, MAIL}),
        ({"event_ids": ["a-1", "g-1"]}, {FULFIL_1, MAIL, ANNOUNCE}),
        ({"event_ids": ["a-1"], "handler": "acme.mail"}, {MAIL}),
        ({"event_ids": ["a-1"], "source": "github"}, set()),
        ({"event_ids": ["a-1"], "error_contains": "422"}, {FULFIL_1}),
    ],
)
def test_the_filters_name_runs_together(
    graveyard: World, filters: dict[str, Any], wanted: set[tuple[str, str]]
) -> None:
    assert found(graveyard, **filters) == wanted


def test_without_ids_only_the_dead_are_found(world: World) -> None:
    world.dead("dead")
    world.script("acme.fulfil", Transient("down"))
    world.deliver("failed")
    world.work()
    world.deliver("not begun")
    assert found(world) == {("dead", "acme.fulfil")}


def test_one_id_of_two_sources_is_two_events(world: World) -> None:
    world.deliver("same")
    world.deliver("same", source="github")
    assert len(found(world, event_ids=["same"])) == 2
    assert found(world, event_ids=["same"], source="github") == {("same", "github.announce")}


def test_the_search_for_dead_runs_reads_no_other_rows(world: World) -> None:
    """A million parked runs must not delay a replay."""
    world.fails("acme.fulfil", Deferred(world.now + timedelta(days=3), "later"))
    for number in range(40):
        world.deliver(f"parked-{number}")
    world.work()
    world.behaviours.clear()
    world.dead("dead")
    read: list[Any] = []
    get_many = world.table.get_many
    world.table.get_many = lambda keys: read.extend(keys) or get_many(keys)  # type: ignore[method-assign,func-returns-value]
    assert found(world) == {("dead", "acme.fulfil")}
    assert [key.pk for key in read] == ["event#acme#dead"]


def test_dead_runs_are_found_oldest_event_first_across_the_shards(world: World) -> None:
    ids = [f"evt-{number}" for number in range(40)]
    for event_id in ids:
        world.deliver(event_id)
        world.clock.advance(seconds=2)
    world.fails("acme.fulfil", Permanent("no"))
    world.work()
    report = world.replay(limit=10, dry_run=True)
    assert [run.event_id for run in report.sample] == ids[:10]
    report = world.replay(limit=10, dry_run=True, cursor=report.cursor)
    assert [run.event_id for run in report.sample] == ids[10:20]


def test_a_search_holds_no_more_than_a_page_of_rows(world: World) -> None:
    for number in range(150):
        world.dead(f"evt-{number}")
    pages: list[int] = []
    get_many = world.table.get_many
    world.table.get_many = lambda keys: pages.append(len(keys)) or get_many(keys)  # type: ignore[method-assign,func-returns-value]
    assert world.replay(limit=1, dry_run=True).matched == 1
    assert pages == [100]


# -- the cursor


def invocations(world: World, **payload: Any) -> Iterator[ReplayReport]:
    """Replays until there is no cursor, as a caller that follows it does."""
    for _ in range(100):
        report = world.replay(**payload)
        yield report
        if report.cursor is None:
            return
        payload["cursor"] = report.cursor
    raise AssertionError("the cursor never ended")


def attempts_of(world: World, amount: int) -> list[int]:
    world.work()
    return [world.run(f"evt-{number}").attempt_count for number in range(amount)]


@pytest.mark.parametrize("limit", [1, 2, 3, 7, 8, 100])
@pytest.mark.parametrize("named", [True, False])
def test_however_it_is_cut_each_run_is_replayed_once(world: World, limit: int, named: bool) -> None:
    ids = [f"evt-{number}" for number in range(8)]
    for event_id in ids:
        world.dead(event_id)
    payload = {"event_ids": ids} if named else {}
    reports = list(invocations(world, limit=limit, **payload))
    assert sum(report.matched for report in reports) == 8
    assert all(report.matched <= limit for report in reports)
    assert attempts_of(world, 8) == [2] * 8
    assert {world.run(event_id).generation for event_id in ids} == {1}


def test_the_limit_may_cut_an_event_with_several_runs() -> None:
    world = World(with_handlers(*(handler(f"acme.{letter}") for letter in "abc")))
    world.deliver("evt-1")
    world.deliver("evt-2")
    world.drop_messages()
    reports = list(invocations(world, event_ids=["evt-1", "evt-2"], limit=1))
    assert [report.matched for report in reports] == [1] * 6
    world.work()
    assert len(world.handled) == len(set(world.handled)) == 6


def test_a_limit_that_is_just_reached_leaves_no_cursor(world: World) -> None:
    for number in range(3):
        world.dead(f"evt-{number}")
    assert world.replay(limit=3).cursor is None


def test_a_limit_is_reached_by_what_fits_alone(graveyard: World) -> None:
    report = graveyard.replay(dry_run=True, handler="acme.mail", limit=1)
    assert (report.matched, report.cursor) == (1, None)


def test_a_missing_id_is_counted_once_however_it_is_cut(world: World) -> None:
    world.dead("evt-0")
    world.dead("evt-1")
    ids = ["evt-0", "missing", "evt-1", "missing too"]
    reports = list(invocations(world, event_ids=ids, limit=1))
    assert sum(report.counts.get("missing", 0) for report in reports) == 2
    assert attempts_of(world, 2) == [2, 2]


def test_out_of_time_it_ends_early_and_is_resumed_where_it_was(world: World) -> None:
    for number in range(12):
        world.dead(f"evt-{number}")
    payload: dict[str, Any] = {"rate_per_second": 1}
    matched = []
    for _ in range(20):
        report = world.replay(seconds=20, **payload)
        matched.append(report.matched)
        if report.cursor is None:
            break
        payload["cursor"] = report.cursor
    assert len(matched) > 1
    assert sum(matched) == 12
    assert attempts_of(world, 12) == [2] * 12


def test_an_invocation_without_time_does_one_run_all_the_same(world: World) -> None:
    for number in range(3):
        world.dead(f"evt-{number}")
    report = world.replay(seconds=1)
    assert report.matched == 1
    assert report.cursor is not None


def test_a_search_among_many_that_do_not_fit_ends_in_time_too(world: World) -> None:
    for number in range(9):
        world.dead(f"evt-{number}")
    slow = world.table.query_index

    def slowly(*parts: Any, **named: Any) -> Any:
        world.clock.advance(seconds=1)
        return slow(*parts, **named)

    world.table.query_index = slowly  # type: ignore[method-assign]
    report = world.replay(
        seconds=(ANSWER_MARGIN + timedelta(seconds=2)).total_seconds(), error_contains="nothing"
    )
    assert report.matched == 0
    assert report.cursor is not None


def test_a_run_that_dies_again_meanwhile_is_not_found_again_behind_the_cursor(
    world: World,
) -> None:
    for number in range(4):
        world.dead(f"evt-{number}")
    world.fails("acme.fulfil", Permanent("still no"))
    first = world.replay(limit=2)
    world.work()
    second = world.replay(limit=100, cursor=first.cursor)
    world.work()
    assert (first.matched, second.matched) == (2, 2)
    assert attempts_of(world, 4) == [2] * 4
    assert {world.run(f"evt-{number}").status for number in range(4)} == {Status.DEAD_LETTER}


def test_more_dead_than_a_page_are_all_found(world: World) -> None:
    for number in range(250):
        world.dead(f"evt-{number}")
    assert world.replay(dry_run=True).matched == 250


@pytest.mark.parametrize(
    "cursor",
    ["", "x", "AAAA", "W10=", "bnVsbA==", "WzEsIDIsIDNd", "Wy0xLCBudWxsXQ==", "\ud800", "é"],
)
@pytest.mark.parametrize("named", [True, False])
def test_a_cursor_that_is_none_of_ours_is_refused(world: World, cursor: str, named: bool) -> None:
    payload: dict[str, Any] = {"event_ids": ["evt-1"]} if named else {}
    if cursor == "":
        assert world.replay(cursor=cursor, **payload).cursor is None
        return
    with pytest.raises(InvalidRequestError, match="cursor"):
        world.replay(cursor=cursor, dry_run=True, **payload)
