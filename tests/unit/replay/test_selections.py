"""Fixed selections: the runs that a dry run listed, each replayed at most once."""

from typing import Any

import pytest

from tests.unit.support.world import World
from webhook_inbox.adapters.memory import Fault
from webhook_inbox.domain.errors import Permanent, Unavailable
from webhook_inbox.domain.model import Status
from webhook_inbox.domain.ports import Key
from webhook_inbox.domain.replay_report import ReplayReport
from webhook_inbox.replay.cursor import ChosenPlace, Cursor
from webhook_inbox.replay.failures import FEWEST
from webhook_inbox.replay.request import InvalidRequestError

BOTH = pytest.mark.parametrize("fault", list(Fault))


def dead(world: World, amount: int) -> list[str]:
    ids = [f"evt-{number}" for number in range(amount)]
    for event_id in ids:
        world.dead(event_id)
    return ids


def fixed(world: World, **filters: Any) -> str:
    """Makes a selection, page by page."""
    report = world.replay(dry_run=True, fix=True, **filters)
    limit = filters.get("limit", 1000)
    while report.cursor and report.matched < limit:
        report = world.replay(dry_run=True, fix=True, selection=report.selection)
    return report.selection


def send(world: World, selection: str, **options: Any) -> list[ReplayReport]:
    """Replays a selection, following the cursor."""
    reports = [world.replay(selection=selection, **options)]
    while reports[-1].cursor:
        cursor = reports[-1].cursor
        reports.append(world.replay(selection=selection, **options, cursor=cursor))
        assert len(reports) < 100
    return reports


def replays(world: World, ids: list[str]) -> list[int]:
    return [len(world.run(event_id).replays) for event_id in ids]


def test_a_selection_has_the_runs_of_the_dry_run_and_no_others(world: World) -> None:
    ids = dead(world, 3)
    selection = fixed(world)
    world.dead("later")
    [report] = send(world, selection)
    assert (report.selection, report.counts) == (selection, {"replayed": 3})
    assert replays(world, [*ids, "later"]) == [1, 1, 1, 0]


def test_a_dry_run_that_fixes_changes_no_run_and_sends_nothing(world: World) -> None:
    ids = dead(world, 3)
    before = [world.row(event_id) for event_id in ids]
    fixed(world)
    assert [world.row(event_id) for event_id in ids] == before
    assert world.messages() == []


def test_runs_that_would_not_be_replayed_are_not_in_the_selection(world: World) -> None:
    world.deliver("done")
    world.work()
    world.dead("dead")
    selection = fixed(world, event_ids=["done", "dead"])
    [report] = send(world, selection)
    assert report.counts == {"replayed": 1}


@pytest.mark.parametrize("limit", [1, 2, 7, 120])
def test_however_it_is_cut_each_run_is_replayed_once(world: World, limit: int) -> None:
    ids = dead(world, 130 if limit > 100 else 8)
    reports = send(world, fixed(world), limit=limit, rate_per_second=500)
    assert sum(report.matched for report in reports) == len(ids)
    assert replays(world, ids) == [1] * len(ids)


def test_a_selection_of_several_pages_has_each_run_once(world: World) -> None:
    ids = dead(world, 9)
    slow = world.table.get_many

    def slowly(*parts: Any, **named: Any) -> Any:
        world.clock.advance(seconds=5)
        return slow(*parts, **named)

    world.table.get_many = slowly  # type: ignore[method-assign]
    first = world.replay(dry_run=True, fix=True, seconds=1)
    assert first.cursor is not None
    report = first
    while report.cursor:
        report = world.replay(dry_run=True, fix=True, selection=first.selection)
    assert (report.matched, report.counts) == (9, {"would_replay": 9})
    assert len(report.sample) == 9
    send(world, first.selection)
    assert replays(world, ids) == [1] * 9


def test_the_limit_holds_for_the_whole_selection(world: World) -> None:
    ids = dead(world, 5)
    selection = fixed(world, limit=3)
    again = world.replay(dry_run=True, fix=True, selection=selection)
    assert (again.matched, again.cursor is None) == (3, False)
    send(world, selection)
    assert sum(replays(world, ids)) == 3


def test_a_page_that_is_repeated_adds_no_run_twice(world: World) -> None:
    dead(world, 3)
    report = world.replay(dry_run=True, fix=True)
    again = world.replay(dry_run=True, fix=True, selection=report.selection)
    assert (again.matched, again.counts) == (3, {"would_replay": 3})


def test_of_two_pages_at_once_one_is_refused(world: World) -> None:
    dead(world, 3)
    put, raced = world.table.put, []

    def overtaken(item: Any, **parts: Any) -> None:
        if item["sk"].startswith("runs#") and not raced:
            raced.append(item["pk"].removeprefix("selection#"))
            world.replay(dry_run=True, fix=True, selection=raced[0])
        put(item, **parts)

    world.table.put = overtaken  # type: ignore[method-assign]
    with pytest.raises(Unavailable, match="another call extends the selection"):
        world.replay(dry_run=True, fix=True)
    [report] = send(world, raced[0])
    assert report.counts == {"replayed": 3}


@BOTH
@pytest.mark.parametrize("skip", [0, 1, 2])
def test_a_list_that_could_not_be_written_is_completed_by_the_next_call(
    world: World, fault: Fault, skip: int
) -> None:
    ids = dead(world, 3)
    world.plan.fail("PutItem", fault, skip=skip, times=1)
    with pytest.raises(Unavailable):
        world.replay(dry_run=True, fix=True)
    world.plan.heal()
    heads = [row for row in world.rows("selection#") if row["sk"] == "head"]
    for head in heads:
        selection = head["pk"].removeprefix("selection#")
        report = world.replay(dry_run=True, fix=True, selection=selection)
        assert report.counts == {"would_replay": 3}
        send(world, selection)
    assert replays(world, ids) == [len(heads)] * 3 if heads else [0] * 3


# -- each run once


def test_a_selection_replayed_again_replays_nothing(world: World) -> None:
    ids = dead(world, 3)
    selection = fixed(world)
    send(world, selection)
    world.fails("acme.fulfil", Permanent("still no such order"))
    world.work()
    assert world.run("evt-0").status is Status.DEAD_LETTER
    [report] = send(world, selection)
    assert (report.matched, report.counts) == (0, {"already_replayed": 3})
    assert replays(world, ids) == [1, 1, 1]


def test_two_replays_of_one_selection_at_once_replay_each_run_once(world: World) -> None:
    ids = dead(world, 3)
    selection = fixed(world)
    update, raced = world.table.update, []

    def overtaken(key: object, change: object, **parts: object) -> object:
        if not raced:
            raced.append(True)
            assert send(world, selection)[0].counts == {"replayed": 3}
        return update(key, change, **parts)  # type: ignore[arg-type]

    world.table.update = overtaken  # type: ignore[method-assign,assignment]
    assert send(world, selection)[0].counts == {"already_replayed": 3}
    assert replays(world, ids) == [1, 1, 1]
    assert world.generations() == [1, 1, 1]


@BOTH
def test_a_lost_answer_replays_no_run_twice(world: World, fault: Fault) -> None:
    ids = dead(world, 30)
    selection = fixed(world)
    world.plan.fail("UpdateItem", fault, skip=13, times=1)
    send(world, selection, rate_per_second=50)
    assert replays(world, ids) == [1] * 30
    world.run_until_quiet()
    assert {world.run(event_id).status for event_id in ids} == {Status.DONE}


@pytest.mark.parametrize("status", [Status.DONE, Status.FAILED, Status.SKIPPED])
def test_a_run_whose_status_changed_meanwhile_is_left_alone(world: World, status: Status) -> None:
    """A redrive of the DLQ attempts a dead run under its generation."""
    dead(world, 1)
    selection = fixed(world)
    world.alter("evt-0", status=str(status))
    [report] = send(world, selection)
    assert report.counts == {"already_replayed": 1}


def test_finished_runs_of_a_selection_are_repeated_by_force(world: World) -> None:
    world.deliver()
    world.work()
    filters = {"status": ["done"], "received_after": "2026-01-01"}
    report = world.replay(dry_run=True, fix=True, force=True, **filters)
    assert (report.repeated, report.counts) == (1, {"would_replay": 1})
    assert send(world, report.selection)[0].counts == {"finished": 1}
    assert send(world, report.selection, force=True)[0].counts == {"replayed": 1}
    world.work()
    assert send(world, report.selection, force=True)[0].counts == {"already_replayed": 1}
    assert len(world.handled) == 2


def test_runs_that_have_not_begun_can_be_selected(world: World) -> None:
    world.deliver()
    world.drop_messages()
    selection = fixed(world, event_ids=["evt-1"])
    assert send(world, selection)[0].counts == {"replayed": 1}
    world.work()
    assert send(world, selection)[0].counts == {"already_replayed": 1}


def test_a_run_of_a_selection_whose_rows_are_gone_is_missing(world: World) -> None:
    world.dead()
    selection = fixed(world)
    for row in world.rows("event#"):
        world.table.delete(Key(row["pk"], row["sk"]))
    assert send(world, selection)[0].counts == {"missing": 1}


# -- hostile calls


@pytest.mark.parametrize(
    "cursor",
    [
        Cursor(again=(("acme", "other", "acme.fulfil"),)),
        Cursor(ChosenPlace(1 << 50)),
        Cursor(ChosenPlace(1), again=(("acme", "other", "acme.fulfil"),)),
    ],
    ids=str,
)
def test_a_cursor_selects_only_what_the_selection_lists(world: World, cursor: Cursor) -> None:
    world.dead("evt-1")
    selection = fixed(world)
    world.dead("other")
    world.replay(selection=selection, cursor=cursor.encode())
    assert world.run("other").status is Status.DEAD_LETTER


def test_an_unknown_selection_is_refused(world: World) -> None:
    with pytest.raises(InvalidRequestError, match="no selection 0123456789ab"):
        world.replay(selection="0123456789ab")


def test_a_selection_expires_after_seven_days(world: World) -> None:
    world.dead()
    selection = fixed(world)
    world.clock.advance(days=7, seconds=1)
    with pytest.raises(InvalidRequestError, match="expired after 7 days"):
        world.replay(selection=selection)


def test_every_page_of_a_selection_is_audited_with_its_id(world: World) -> None:
    dead(world, 2)
    selection = fixed(world, requested_by="kim")
    send(world, selection, requested_by="kim", reason="fixed", limit=1)
    rows = world.rows("audit#")
    assert len(rows) == 2
    assert {row["request"]["selection"] for row in rows} == {selection}


# -- outcomes


def stop(world: World, selection: str, **options: Any) -> list[ReplayReport]:
    """Replays in pages of ten until the end or a failure; workers work in between."""
    reports = [world.replay(selection=selection, limit=10, **options)]
    while reports[-1].cursor and not reports[-1].failed:
        world.work()
        cursor = reports[-1].cursor
        reports.append(world.replay(selection=selection, limit=10, cursor=cursor, **options))
    return reports


def test_a_replay_stops_when_too_many_runs_fail_again(world: World) -> None:
    ids = dead(world, 40)
    selection = fixed(world)
    world.fails("acme.fulfil", Permanent("still no such order"))
    first, second = stop(world, selection)
    assert (first.matched, second.matched) == (10, 0)
    assert second.failed.startswith("failure rate 100%: 10 of the latest 10 replayed runs")
    assert second.outcomes == {"dead_letter": 10}
    assert len(second.failures) == 10
    assert sum(replays(world, ids)) == 10


@pytest.mark.parametrize(("share", "stops"), [(0.2, True), (0.3, False), (None, True)])
def test_the_share_of_failures_is_the_caller_s(
    world: World, share: float | None, stops: bool
) -> None:
    dead(world, 20)
    selection = fixed(world)
    world.script("acme.fulfil", *[Permanent("no")] * 3)
    reports = stop(world, selection, stop_at_failures=share)
    assert bool(reports[-1].failed) is stops


def test_a_few_failures_stop_nothing(world: World) -> None:
    ids = dead(world, FEWEST - 1)
    selection = fixed(world)
    world.fails("acme.fulfil", Permanent("no"))
    world.replay(selection=selection, limit=FEWEST - 2)
    world.work()
    assert send(world, selection)[0].failed == ""
    assert replays(world, ids) == [1] * len(ids)


def test_failures_of_before_the_operator_continued_do_not_count(world: World) -> None:
    ids = dead(world, 30)
    selection = fixed(world)
    world.fails("acme.fulfil", Permanent("no"))
    assert stop(world, selection)[-1].failed
    world.behaviours.clear()
    world.clock.advance(seconds=1)
    reports = stop(world, selection)
    assert reports[-1].failed == ""
    assert replays(world, ids) == [1] * 30


def test_outcomes_are_read_within_a_long_page_as_well(world: World) -> None:
    dead(world, 100)
    selection = fixed(world)
    world.fails("acme.fulfil", Permanent("no"))
    sleep = world.clock.sleep

    def working(seconds: float) -> None:
        sleep(seconds)
        world.work()

    world.clock.sleep = working  # type: ignore[method-assign]
    report = world.replay(selection=selection, rate_per_second=5)
    assert "failure rate" in report.failed
    assert report.matched < 60


# -- the report


def test_the_report_counts_handlers_errors_and_what_to_know_before(world: World) -> None:
    world.dead("one", error=Permanent("no order 12345"))
    world.dead("two", error=Permanent("no order 67890"))
    data = world.replay(dry_run=True).to_data()
    assert data["handlers"] == {"acme.fulfil": 2}
    assert data["errors"] == {"no order <number>": 2}
    assert (data["retrying"], data["repeated"], data["batches"]) == (0, 0, 0)
    assert data["estimate"]["writes"] == 16
    assert 0 < data["estimate"]["dollars"] < 0.001


def test_the_report_names_the_ten_most_frequent_errors(world: World) -> None:
    for letter in "abcdefghijkl":
        world.dead(f"evt-{letter}", error=Permanent(f"error {letter}"))
    world.dead("again", error=Permanent("error l"))
    errors = world.replay(dry_run=True).to_data()["errors"]
    assert len(errors) == 11
    assert errors["error l"] == 2
    assert errors["(other errors)"] == 2


def test_the_report_tells_of_pending_retries(world: World) -> None:
    world.deliver()
    world.drop_messages()
    assert world.replay(dry_run=True, event_ids=["evt-1"]).retrying == 1
