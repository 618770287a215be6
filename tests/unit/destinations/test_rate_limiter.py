"""The rate limit: a turn for each run, a start time for each call, and no run sent back."""

from dataclasses import replace
from datetime import timedelta
from itertools import pairwise

import pytest

from tests.unit.destinations.site import CRM, LIMITED, Site
from webhook_inbox.destinations.circuit import UNKNOWN, CallOutcome
from webhook_inbox.destinations.gate import spelled_rate
from webhook_inbox.destinations.rate_limiter import (
    HEADROOM,
    LEAD,
    NEAR,
    PATIENCE,
    SECOND,
    SLOT,
    Pace,
    microseconds,
)
from webhook_inbox.domain.errors import Skipped, Transient

STEP = HEADROOM / 10
LEAD_SECONDS = LEAD / SECOND


@pytest.fixture
def site() -> Site:
    return Site(LIMITED)


def crowd(site: Site, runs: int) -> list[dict[str, int]]:
    """Lets so many runs come at once and returns what those keep that are to come again."""
    admissions = [site.admit(gate=site.worker()) for _ in range(runs)]
    return [dict(one.reservations) for one in admissions if not one.go]


# -- who may begin


def test_without_a_limit_nothing_is_written() -> None:
    site = Site(CRM)
    for _ in range(100):
        assert site.admit().reservations == {}
        assert site.enter() == {}
    assert list(site.table) == []
    assert site.clock.slept == []


def test_a_run_that_exceeds_nothing_begins_and_calls_at_once(site: Site) -> None:
    for _ in range(5):
        site.call(CallOutcome.ok())
        site.clock.advance(seconds=STEP)

    assert site.clock.slept == []


def test_a_run_and_its_call_cost_one_write_each(site: Site) -> None:
    site.call(CallOutcome.ok())

    assert site.plan.operations() == ["GetItem", "UpdateItem", "UpdateItem"]


def test_of_a_crowd_as_many_begin_as_can_call_within_two_seconds(site: Site) -> None:
    admitted = [site.admit(gate=site.worker()).go for _ in range(60)]

    assert admitted == [True] * 20 + [False] * 40


def test_the_rest_is_to_come_one_after_the_other(site: Site) -> None:
    crowd(site, 20)

    waits = [site.wait(site.admit(gate=site.worker())) for _ in range(40)]

    assert waits[0] == pytest.approx(20 * STEP - LEAD_SECONDS, abs=0.01)
    assert all(after - before == pytest.approx(STEP) for before, after in pairwise(waits))


def test_who_waits_is_told_why(site: Site) -> None:
    crowd(site, 20)

    admission = site.admit()

    assert admission.why == "destination crm: over its rate of 10/s"
    assert admission.on_limit == "queue"


def test_a_run_that_comes_later_does_not_overtake(site: Site) -> None:
    crowd(site, 100)
    site.clock.advance(seconds=5)

    assert site.wait(site.admit()) == pytest.approx(100 * STEP - 5 - LEAD_SECONDS, abs=0.01)


def test_no_run_waits_after_all_have_had_their_turn(site: Site) -> None:
    crowd(site, 100)
    site.clock.advance(seconds=100 * STEP)

    assert site.admit().go


# -- who comes for its turn


def test_a_run_that_comes_for_its_turn_begins_and_reserves_nothing(site: Site) -> None:
    first = crowd(site, 60)[0]
    site.clock.advance(seconds=2)
    site.plan.operations()

    assert site.admit(first).go

    assert "UpdateItem" not in site.plan.operations()


def test_a_run_comes_early_enough_for_its_delay_to_be_rounded_up(site: Site) -> None:
    """And then its call waits until its reservation."""
    for reservations in [dict(site.admit().reservations) for _ in range(20)]:
        site.enter(reservations)
    site.clock.slept.clear()
    later = crowd(site, 31)
    site.clock.advance(seconds=2)

    admission = site.admit(later[-1])
    assert admission.go
    site.enter(dict(admission.reservations))

    assert site.clock.slept == []  # so long after the others there is no need to


def test_a_run_that_comes_late_begins_before_all_who_still_wait(site: Site) -> None:
    kept = crowd(site, 600)
    site.clock.advance(seconds=30)

    assert site.admit(kept[0]).go
    assert site.admit(kept[1]).go


def test_a_run_that_is_sent_again_long_before_its_turn_keeps_its_turn(site: Site) -> None:
    last = crowd(site, 600)[-1]
    site.clock.advance(seconds=10)
    before = site.limit_row()

    again = site.admit(last)

    assert again.reservations == last
    assert site.wait(again) == pytest.approx(600 * STEP - 10 - LEAD_SECONDS, abs=0.2)
    assert site.limit_row() == before


def test_when_many_return_late_at_once_the_rest_get_reservations_before_new_runs(
    site: Site,
) -> None:
    kept = crowd(site, 120)
    site.clock.advance(seconds=60)
    began, again = 0, []
    for reservations in kept:
        admission = site.admit(reservations)
        if admission.go:
            began += 1
            site.take(1)  # all of them run at once: none has slept yet when the next one comes
        else:
            again.append(admission)

    turns = [one.reservations["crm"] for one in again]
    assert began == pytest.approx((PATIENCE - NEAR) / SECOND / STEP, abs=1)
    assert turns == sorted(turns)
    assert site.seconds(turns[0]) == pytest.approx(began * STEP, abs=STEP)
    assert site.seconds(turns[-1]) == pytest.approx(100 * STEP, rel=0.02)
    assert site.wait(site.admit()) >= site.wait(again[-1])


def returned(site: Site) -> dict[str, int]:
    """Returns what a run keeps whose reservation was replaced, by one 6 seconds later."""
    site.take(60)
    admission = site.admit(site.admitted())
    assert site.wait(admission) == pytest.approx(60 * STEP - LEAD_SECONDS, abs=0.01)
    return dict(admission.reservations)


def test_a_run_that_returns_begins_when_it_is_its_turn(site: Site) -> None:
    reservations = returned(site)
    site.clock.advance(seconds=5.2)
    site.plan.operations()

    admission = site.admit(reservations)
    assert admission.go
    site.enter(dict(admission.reservations))

    assert site.plan.operations().count("UpdateItem") == 1
    assert site.clock.slept == [pytest.approx(60 * STEP - 5.2)]


# -- a call's time


def test_calls_of_one_moment_begin_one_after_the_other(site: Site) -> None:
    admitted = [dict(site.admit(gate=site.worker()).reservations) for _ in range(5)]
    for reservations in admitted:
        site.enter(reservations, gate=site.worker())

    # The clock is everybody's: each sleeps for what the one before has left.
    assert site.clock.slept == [pytest.approx(STEP, abs=0.002)] * 4


def test_a_call_never_sleeps_longer_than_eight_seconds_nor_past_the_deadline(site: Site) -> None:
    site.take(19)
    started = site.limit_row()["next_slot"]
    assert site.put_off(site.admitted(), seconds=1.5) == pytest.approx(
        19 * STEP - LEAD_SECONDS, abs=0.01
    )
    site.take(60)
    reservations = site.admitted()
    assert site.put_off(reservations) == pytest.approx(79 * STEP - LEAD_SECONDS, abs=STEP)

    assert site.clock.slept == []
    assert site.limit_row()["next_slot"] == started + 60 * STEP * SECOND  # no new slot
    assert list(reservations) == ["crm"]


def test_a_second_call_of_a_run_gets_a_reservation_of_its_own(site: Site) -> None:
    reservations = dict(site.admit().reservations)
    site.enter(reservations)
    crowd(site, 100)

    site.enter(reservations)

    assert site.clock.slept == [pytest.approx(STEP, abs=0.002)]


def test_a_call_of_a_destination_that_was_not_declared_queues_like_a_run(site: Site) -> None:
    crowd(site, 100)
    reservations: dict[str, int] = {}

    assert site.put_off(reservations) == pytest.approx(100 * STEP - LEAD_SECONDS, abs=0.01)

    assert list(reservations) == ["crm"]
    assert site.put_off(reservations) == pytest.approx(100 * STEP - LEAD_SECONDS, abs=0.01)
    site.clock.advance(seconds=10)
    site.enter(reservations)


def test_calls_without_a_turn_keep_new_runs_back(site: Site) -> None:
    """Each run makes three calls: as many begin as can make them."""
    for _ in range(7):
        assert site.admit().go
        site.take(3)

    assert not site.admit().go


@pytest.mark.parametrize("took", [0.5, 3.0, 8.0])
def test_a_handler_that_is_slow_to_call_costs_no_reservation(site: Site, took: float) -> None:
    reservations = dict(site.admit().reservations)
    site.clock.advance(seconds=took)
    site.plan.operations()

    site.enter(reservations)

    assert site.plan.operations().count("UpdateItem") == 1
    assert site.clock.slept == []


# -- what a run does that would exceed it


def test_a_run_may_be_dropped_instead(site: Site) -> None:
    site.spec = replace(LIMITED, on_limit="drop")
    admissions = [site.admit(gate=site.worker()) for _ in range(25)]

    assert [one.go for one in admissions] == [True] * 20 + [False] * 5
    assert {one.on_limit for one in admissions[20:]} == {"drop"}
    assert "next_reservation" in site.limit_row()
    with pytest.raises(Skipped, match="over its rate of 10/s"):
        site.enter()


def test_a_run_may_fail_instead(site: Site) -> None:
    site.spec = replace(LIMITED, on_limit="error")
    admissions = [site.admit(gate=site.worker()) for _ in range(25)]

    assert {one.on_limit for one in admissions[20:]} == {"error"}
    with pytest.raises(Transient) as failed:
        site.enter()
    assert failed.value.refused
    assert failed.value.retry_after == pytest.approx(
        timedelta(seconds=20 * STEP), abs=timedelta(seconds=0.1)
    )


@pytest.mark.parametrize("on_limit", ["drop", "error"])
def test_those_that_are_not_queued_reserve_nothing(site: Site, on_limit: str) -> None:
    site.spec = replace(LIMITED, on_limit=on_limit)
    crowd(site, 20)
    before = site.limit_row()

    crowd(site, 50)

    assert site.limit_row() == before
    site.clock.advance(seconds=1)
    assert site.admit().go


@pytest.mark.parametrize("on_limit", ["drop", "error"])
def test_a_worker_that_has_not_read_the_row_queues_none_of_them(site: Site, on_limit: str) -> None:
    site.spec = replace(LIMITED, on_limit=on_limit)
    site.take(80)
    before = site.limit_row()

    admission = site.admit(gate=site.worker())
    assert (admission.go, admission.on_limit) == (False, on_limit)
    assert admission.reservations == {}
    assert site.wait(admission) == pytest.approx(80 * STEP, abs=0.1)
    with pytest.raises((Skipped, Transient)):
        site.enter({}, gate=site.worker())
    assert site.limit_row() == before


@pytest.mark.parametrize("on_limit", ["drop", "error"])
def test_nor_does_one_whose_row_is_out_of_date(site: Site, on_limit: str) -> None:
    site.spec = replace(LIMITED, on_limit=on_limit)
    informed = site.worker()
    assert site.admit(gate=informed).go
    site.take(80)

    admission = site.admit(gate=informed)
    assert (admission.go, admission.on_limit) == (False, on_limit)
    assert admission.reservations == {}


def test_a_second_call_is_dropped_too_if_it_exceeds_the_rate(site: Site) -> None:
    site.spec = replace(LIMITED, on_limit="drop")
    reservations = dict(site.admit().reservations)
    site.enter(reservations)
    site.take(80)

    with pytest.raises(Skipped):
        site.enter(reservations)


# -- several destinations


def test_a_run_waits_for_each_of_its_destinations(site: Site) -> None:
    shop = replace(LIMITED, name="shop", rate=1.0)
    site.gate.admit([shop], kept={})
    site.gate.admit([shop], kept={})

    admission = site.gate.admit([LIMITED, shop], kept={})

    assert not admission.go
    assert admission.destination == "shop"
    assert admission.why.startswith("destination shop")
    assert set(admission.reservations) == {"crm", "shop"}
    site.clock.advance(seconds=2)
    assert site.gate.admit([LIMITED, shop], kept=admission.reservations).go


def test_a_destination_that_is_down_is_waited_for_before_a_reservation_of_another_is_taken(
    site: Site,
) -> None:
    down = replace(CRM, name="down")
    for _ in range(5):
        site.gate.report(down, CallOutcome.failed())

    admission = site.gate.admit([LIMITED, down], kept={})

    assert admission.why == "destination down: its circuit is open"
    assert site.limit_row() == {}


def test_reservations_of_other_destinations_are_kept_untouched(site: Site) -> None:
    admission = site.admit({"shop": 7, "shop#again": 9, "crm-2": 3})

    assert {"shop": 7, "shop#again": 9, "crm-2": 3}.items() <= admission.reservations.items()


# -- blocks


def thousand() -> Site:
    return Site(replace(CRM, rate=1000.0))


def calls(site: Site, count: int, *, pause: float = 0.0) -> int:
    """Makes calls of one run one after the other, and returns how many writes they cost."""
    reservations = dict(site.admit().reservations)
    site.plan.operations()
    for _ in range(count):
        site.enter(reservations)
        site.clock.advance(seconds=pause)
    return site.plan.operations().count("UpdateItem")


def test_above_400_a_second_a_worker_reserves_several_reservations_at_once() -> None:
    site = thousand()

    writes = calls(site, 500)

    assert writes <= 500 / 3 + 2
    assert sum(site.clock.slept) == pytest.approx(500 * HEADROOM / 1000, rel=0.01)


def test_up_to_390_a_second_each_call_reserves_its_own() -> None:
    assert calls(Site(replace(CRM, rate=390.0)), 50) == 50


def test_reservations_of_a_block_that_were_not_used_in_time_lapse() -> None:
    site = thousand()
    calls(site, 2)
    site.clock.advance(seconds=1)
    site.clock.slept.clear()

    began = []
    reservations = site.admitted()
    for _ in range(20):
        site.enter(reservations)
        began.append(site.clock.now())

    assert began[-1] - began[0] >= timedelta(milliseconds=19)


def test_a_block_is_never_written_more_than_400_times_a_second() -> None:
    site = Site(replace(CRM, rate=4000.0))
    lengths, before = set(), 0
    for _ in range(120):
        site.enter(site.admitted())
        slot = site.limit_row()[SLOT]
        if slot != before and before:
            lengths.add(round((slot - before) / 257))
        before = slot

    assert lengths == {10}


def test_two_workers_with_blocks_never_have_the_same_slot() -> None:
    site = thousand()
    now = microseconds(site.clock.now())
    limiters = [site.worker()._limiter, site.worker()._limiter]
    slots = [
        limiter.begin(Pace(site.spec, UNKNOWN), now, latest=1 << 62).start
        for _ in range(100)
        for limiter in limiters
    ]

    assert len(set(slots)) == 200


def test_patience_is_what_a_queue_could_do_no_better() -> None:
    """A message comes up to a second later than asked for: a shorter wait is not worth one."""
    assert LEAD + SECOND <= NEAR <= PATIENCE


@pytest.mark.parametrize(
    ("rate", "spelled"),
    [(10, "10/s"), (1, "1/s"), (1 / 3, "20/m"), (1 / 60, "1/m"), (1 / 3600, "1/h"), (2.5, "2.5/s")],
)
def test_a_rate_is_told_as_it_was_written(rate: float, spelled: str) -> None:
    assert spelled_rate(rate) == spelled
