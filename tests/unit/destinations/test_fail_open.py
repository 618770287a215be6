"""Neither a table that fails nor a clock that is wrong stops a run."""

from dataclasses import replace
from datetime import timedelta
from itertools import pairwise

import pytest

from tests.unit.destinations.site import BREAKER, CRM, FRAGILE, LIMITED, Site
from webhook_inbox.adapters.memory import Fault
from webhook_inbox.destinations.circuit import CallOutcome
from webhook_inbox.domain.errors import ConditionFailed
from webhook_inbox.domain.ports import Change, Item, Key

OPERATIONS = ("GetItem", "UpdateItem")
FAULTS = [Fault.BEFORE, Fault.AFTER]
EVERY_ANSWER = [CallOutcome.ok(), CallOutcome.failed(), CallOutcome.limited(timedelta(seconds=5))]


def broken(site: Site, fault: Fault = Fault.BEFORE) -> Site:
    for operation in OPERATIONS:
        site.plan.fail(operation, fault, times=10_000)
    return site


# -- a table that fails


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("spec", [CRM, LIMITED, FRAGILE], ids=["plain", "limited", "fragile"])
def test_a_table_that_cannot_be_reached_lets_every_run_begin_and_every_call_be_made(
    spec: object, fault: Fault
) -> None:
    site = broken(Site(spec), fault)  # type: ignore[arg-type]
    for answer in EVERY_ANSWER * 5:
        admission = site.admit()
        assert admission.go
        assert [name.split(":")[0] for name in admission.degraded] == ["crm"]
        site.enter(dict(admission.reservations))
        site.gate.report(site.spec, answer)
    assert site.clock.slept == []


def test_it_is_told_what_could_not_be_asked_by_a_call_once() -> None:
    site = broken(Site(LIMITED))
    site.enter()
    site.gate.report(site.spec, CallOutcome.failed())

    assert len(site.gate.degraded()) == 2
    assert site.gate.degraded() == ()


def test_a_table_that_fails_for_one_destination_does_not_open_the_others() -> None:
    site = Site(FRAGILE)
    site.open()
    other = replace(LIMITED, name="other")
    site.plan.fail("UpdateItem")

    admission = site.gate.admit([other], kept={})
    assert admission.go
    assert admission.degraded

    assert not site.gate.admit([other, FRAGILE], kept={}).go


def test_what_fails_open_is_asked_again_the_next_time() -> None:
    site = Site(FRAGILE)
    site.open()
    fresh = site.worker()
    broken(site)
    assert site.admit(gate=fresh).go
    site.plan.heal()

    assert not site.admit(gate=fresh).go


def test_a_run_that_can_be_given_no_turn_begins_though_the_circuit_is_known_to_be_open() -> None:
    site = Site(FRAGILE)
    site.open()
    broken(site)

    admission = site.admit()

    assert admission.go
    assert admission.degraded


@pytest.mark.parametrize("fault", FAULTS)
def test_a_lost_failure_opens_it_one_failure_later_at_most(fault: Fault) -> None:
    site = Site(FRAGILE)
    site.fail(1)
    site.plan.fail("UpdateItem", fault)
    site.fail(1)
    site.plan.heal()

    site.fail(1)
    if site.admit().go:
        site.fail(1)

    assert not site.admit().go


def test_an_opening_that_was_lost_is_made_up_for_by_the_next_failure() -> None:
    site = Site(FRAGILE)
    site.fail(BREAKER.failures - 1)
    site.plan.fail("UpdateItem", skip=1)
    site.fail(1)
    assert site.admit().go

    site.fail(1)

    assert not site.admit().go


def test_a_reservation_whose_answer_was_lost_costs_one_reservation() -> None:
    site = Site(LIMITED)
    site.enter(site.admitted())
    before = site.limit_row()["next_slot"]
    site.plan.fail("UpdateItem", Fault.AFTER)
    site.enter(site.admitted())
    site.enter(site.admitted())

    lost = (site.limit_row()["next_slot"] - before) / 102_500
    assert lost == pytest.approx(2, abs=0.01)


def test_a_row_that_all_workers_write_at_once_stops_no_run() -> None:
    """Each try finds another timeline than it saw."""
    site = Site(LIMITED)

    def contended(key: Key, change: Change, *, when: object = None) -> Item:
        raise ConditionFailed({"pk": key.pk, "sk": key.sk})

    site.table.update = contended  # type: ignore[method-assign,assignment]

    admission = site.admit()

    assert admission.go
    assert "contended" in admission.degraded[0]


def test_a_row_that_was_deleted_begins_anew() -> None:
    site = Site(LIMITED)
    for _ in range(50):
        site.admit()
    for row in list(site.table):
        site.table.delete(Key(row["pk"], row["sk"]))

    site.admit()

    assert site.admit().go


# -- clocks


@pytest.mark.parametrize("skew", [-5.0, -0.5, 0.5, 5.0])
def test_a_worker_whose_clock_is_wrong_neither_fails_nor_is_lost(skew: float) -> None:
    site = Site(replace(LIMITED, breaker=BREAKER))
    other = site.worker(skew=skew)
    workers = [site.gate, other]
    kept: list[dict[str, int]] = [{} for _ in range(60)]
    begun = 0
    for _ in range(200):
        for reservations in list(kept):
            gate = workers[begun % 2]
            admission = site.admit(reservations, gate=gate)
            kept.remove(reservations)
            if admission.go:
                begun += 1
            else:
                kept.append(dict(admission.reservations))
        site.clock.advance(seconds=0.5)
        if not kept:
            break

    assert begun == 60
    assert not kept


@pytest.mark.parametrize("skew", [-5.0, 5.0])
def test_a_probe_is_made_by_one_though_clocks_differ(skew: float) -> None:
    site = Site(FRAGILE)
    other = site.worker(skew=skew)
    site.open()
    site.clock.advance(seconds=BREAKER.recovery + 5)

    assert [site.admit(gate=other).go, site.admit().go, site.admit(gate=site.worker()).go] == [
        True,
        False,
        False,
    ]


def test_a_clock_that_is_set_back_is_read_anew_and_sleeps_for_no_negative_time() -> None:
    site = Site(LIMITED)
    for _ in range(5):
        site.enter(site.admitted())
    site.clock.advance(seconds=-9)

    site.put_off(site.admitted())
    site.clock.advance(seconds=9)
    site.enter(site.admitted())

    assert min(site.clock.slept) > 0


def test_a_clock_that_does_not_move_while_it_sleeps_is_believed() -> None:
    site = Site(LIMITED)
    site.take(5)
    site.clock.sleep = site.clock.slept.append  # type: ignore[method-assign]

    site.enter(site.admitted())

    assert len(site.clock.slept) == 1


def test_a_worker_that_sleeps_for_too_long_takes_the_next_reservation() -> None:
    site = Site(LIMITED)
    site.take(5)
    times = []
    sleep = site.clock.sleep

    def oversleep(seconds: float) -> None:
        sleep(seconds + (0.5 if not times else 0))
        times.append(seconds)

    site.clock.sleep = oversleep  # type: ignore[method-assign]
    before = site.limit_row()["next_slot"]

    site.enter(site.admitted())

    assert site.limit_row()["next_slot"] > before + 102_500


def test_dues_of_one_worker_follow_each_other_though_its_clock_jumps() -> None:
    site = Site(LIMITED)
    for _ in range(100):
        site.admit()
    dues = []
    for jump in (0.0, 2.0, -4.0, 1.0):
        site.clock.advance(seconds=jump)
        admission = site.admit()
        assert admission.due is not None
        dues.append(admission.due)

    assert all(before < after for before, after in pairwise(dues))
