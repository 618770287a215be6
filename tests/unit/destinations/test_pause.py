"""A 429 pauses its destination for everybody, and it resumes slowly."""

from dataclasses import replace
from datetime import timedelta
from itertools import pairwise

import pytest

from tests.unit.destinations.site import BREAKER, CRM, FRAGILE, LIMITED, Site
from webhook_inbox.destinations.circuit import CallOutcome
from webhook_inbox.destinations.circuit_breaker import DEFAULT_PAUSE, LONGEST_PAUSE, SHORTEST_PAUSE
from webhook_inbox.destinations.rate_limiter import HEADROOM, SECOND, SLOW

SLOWEST, SLOWER = (ends / SECOND for ends, _, _ in SLOW)


def limited(seconds: float | None = 30.0) -> CallOutcome:
    return CallOutcome.limited(None if seconds is None else timedelta(seconds=seconds))


@pytest.fixture
def site() -> Site:
    return Site(LIMITED)


@pytest.fixture(params=[CRM, LIMITED], ids=["without a rate", "with a rate"])
def paused(request: pytest.FixtureRequest) -> Site:
    site = Site(request.param)
    site.call(limited(30))
    return site


def begun(site: Site, seconds: float) -> list[float]:
    """Lets runs come without end for so long; returns when their calls began, from now on."""
    first, times = site.clock.now(), []
    while (site.clock.now() - first).total_seconds() < seconds:
        site.enter(site.admitted())
        times.append((site.clock.now() - first).total_seconds())
        site.clock.advance(seconds=0.001)
    return times


# -- the pause


def test_no_run_calls_until_it_is_over(paused: Site) -> None:
    first = paused.admit()
    for _ in range(23):
        assert paused.wait(paused.admit(gate=paused.worker())) > 0
        assert paused.put_off(paused.admitted()) >= 0
        paused.clock.advance(seconds=0.9)
    paused.clock.advance(seconds=16)

    assert paused.admit(first.reservations, gate=paused.worker()).go


def test_who_waits_is_told_why(paused: Site) -> None:
    admission = paused.admit()

    assert admission.why == "destination crm: paused after a 429"
    assert admission.on_limit == ""


@pytest.mark.parametrize(
    ("asked", "lasts"),
    [
        (None, DEFAULT_PAUSE),
        (30, timedelta(seconds=30)),
        (0, SHORTEST_PAUSE),
        (-3600, SHORTEST_PAUSE),
        (365 * 86400, LONGEST_PAUSE),
        (10**9, LONGEST_PAUSE),
    ],
)
def test_it_lasts_as_long_as_asked_for_within_reason(
    site: Site, asked: float | None, lasts: timedelta
) -> None:
    site.call(limited(asked))

    until = site.breaker_row()["paused_until"]
    assert site.seconds(until) == lasts.total_seconds()


def test_a_shorter_pause_does_not_end_a_longer_one(site: Site) -> None:
    site.enter()
    site.enter()
    site.gate.report(site.spec, limited(100))
    site.gate.report(site.spec, limited(5))

    assert site.seconds(site.breaker_row()["paused_until"]) == 100


def test_it_is_no_failure(site: Site) -> None:
    site.spec = replace(FRAGILE, rate=10.0)
    for _ in range(BREAKER.failures + 1):
        site.call(limited(1))
        site.clock.advance(seconds=2)

    assert site.breaker_row().get("failures", 0) == 0
    assert site.admit().go


def test_it_does_not_forgive_failures_either(site: Site) -> None:
    site.spec = FRAGILE
    site.fail(BREAKER.failures - 1)
    site.call(limited(1))
    site.clock.advance(seconds=2)

    site.fail(1)

    assert not site.admit().go


def test_a_probe_that_is_limited_closes_the_circuit_and_pauses(site: Site) -> None:
    site.spec = FRAGILE
    site.open()
    site.clock.advance(seconds=BREAKER.recovery)

    site.call(limited(10))

    assert "open_until" not in site.breaker_row()
    assert site.admit().why == "destination crm: paused after a 429"


def test_it_holds_for_a_destination_without_a_breaker() -> None:
    site = Site(replace(CRM, breaker=None))
    site.call(limited(10))

    assert site.wait(site.admit(gate=site.worker())) >= 9


def test_a_turn_before_its_end_is_replaced_in_order(site: Site) -> None:
    kept = [dict(a.reservations) for a in (site.admit() for _ in range(120)) if not a.go]
    site.enter(site.admitted())
    site.gate.report(site.spec, limited(60))
    site.clock.advance(seconds=8)

    again = [site.admit(reservations) for reservations in kept[:80]]

    turns = [one.reservations["crm"] for one in again]
    assert turns == sorted(turns)
    assert site.seconds(turns[0]) == pytest.approx(52, abs=0.01)
    assert site.wait(again[0]) == pytest.approx(51, abs=0.01)


def test_a_turn_after_its_end_is_kept(site: Site) -> None:
    last = [dict(a.reservations) for a in (site.admit() for _ in range(500)) if not a.go][-1]
    site.gate.report(site.spec, limited(20))

    assert site.admit(last).reservations == last


def test_a_run_that_was_let_through_before_it_makes_no_call_any_more(site: Site) -> None:
    reservations = dict(site.admit().reservations)
    site.gate.report(site.spec, limited(60))

    assert site.put_off(reservations) == pytest.approx(59, abs=0.01)

    assert site.seconds(reservations["crm"]) == 60
    site.clock.advance(seconds=59.5)
    admission = site.admit(reservations)
    assert admission.go
    site.enter(dict(admission.reservations))
    assert site.clock.slept == [0.5]


def test_on_limit_does_not_drop_whom_a_pause_keeps(site: Site) -> None:
    site.spec = replace(LIMITED, on_limit="drop")
    site.call(limited(30))

    admission = site.admit()

    assert admission.on_limit == ""
    assert site.wait(admission) >= 29
    assert site.put_off(site.admitted()) >= 29


def test_a_call_that_waits_for_its_reservation_when_the_pause_begins_is_put_off(site: Site) -> None:
    """It looks again when it has slept."""
    site.take(15)
    other, sleep = site.worker(), site.clock.sleep

    def pause_meanwhile(seconds: float) -> None:
        sleep(seconds)
        other.report(site.spec, limited(60))

    site.clock.sleep = pause_meanwhile  # type: ignore[method-assign]

    assert site.put_off(site.admitted()) == pytest.approx(59, abs=0.01)
    assert len(site.clock.slept) == 1


# -- the slow start


def test_it_resumes_at_half_the_rate_then_three_quarters_then_all_of_it(site: Site) -> None:
    site.call(limited(10))
    site.clock.advance(seconds=10)

    times = begun(site, 90)

    gaps = [after - before for before, after in pairwise(times)]
    ends = times[1:]
    slowest = [gap for gap, end in zip(gaps, ends, strict=True) if end < SLOWEST]
    slower = [gap for gap, end in zip(gaps, ends, strict=True) if SLOWEST + 1 < end < SLOWER]
    full = [gap for gap, end in zip(gaps, ends, strict=True) if end > SLOWER + 1]
    assert sum(slowest) / len(slowest) == pytest.approx(2 * HEADROOM / 10, rel=0.01)
    assert sum(slower) / len(slower) == pytest.approx(HEADROOM / 7.5, rel=0.01)
    assert sum(full) / len(full) == pytest.approx(HEADROOM / 10, rel=0.01)


def test_without_a_rate_it_resumes_at_the_drain_rate_then_twice_that_then_without_limit() -> None:
    site = Site(FRAGILE)
    site.call(limited(10))
    site.clock.advance(seconds=10)

    times = begun(site, 61)

    assert len([t for t in times if t < SLOWEST]) == pytest.approx(
        SLOWEST * BREAKER.drain / HEADROOM, abs=2
    )
    assert len([t for t in times if SLOWEST <= t < SLOWER]) == pytest.approx(
        (SLOWER - SLOWEST) * 2 * BREAKER.drain / HEADROOM, abs=2
    )
    assert len([t for t in times if t >= SLOWER]) > 500


def test_a_slow_start_is_told_as_such() -> None:
    site = Site(FRAGILE)
    site.call(limited(10))
    site.clock.advance(seconds=10)

    waits = [one for one in (site.admit() for _ in range(30)) if not one.go]

    assert {one.why for one in waits} == {"destination crm: over the slow start after a 429"}


def test_a_crowd_that_waited_for_the_pause_comes_at_the_slow_rate(site: Site) -> None:
    site.call(limited(20))
    waits = [site.wait(site.admit(gate=site.worker())) for _ in range(100)]

    gaps = [after - before for before, after in pairwise(waits)]
    assert min(gaps) >= 2 / 10
    assert waits[0] == pytest.approx(19, abs=0.01)


def test_a_queue_that_reaches_beyond_the_slow_start_is_not_slow_there(site: Site) -> None:
    site.call(limited(20))
    waits = [site.wait(site.admit(gate=site.worker())) for _ in range(600)]

    assert waits[-1] - waits[-2] == pytest.approx(HEADROOM / 10, abs=0.001)
    assert waits[-1] < 20 + 60 + 300 / 10 * HEADROOM


def test_another_429_begins_the_slow_start_anew(site: Site) -> None:
    site.call(limited(1))
    site.clock.advance(seconds=1 + SLOWER - 1)
    site.call(limited(1))
    site.clock.advance(seconds=1)

    gaps = [after - before for before, after in pairwise(begun(site, 5))]

    assert min(gaps[1:]) >= 2 / 10


def test_a_503_with_a_pause_is_a_failure_and_a_pause(site: Site) -> None:
    site.spec = FRAGILE
    down = CallOutcome.failed(timedelta(seconds=300))
    for _ in range(BREAKER.failures):
        site.enter(site.admitted())
        site.gate.report(site.spec, down)
        site.clock.advance(seconds=301)

    assert site.breaker_row()["failures"] == BREAKER.failures


def test_an_open_circuit_is_not_probed_before_the_pause_that_was_requested(site: Site) -> None:
    site.spec = FRAGILE
    site.fail(BREAKER.failures - 1)
    site.enter(site.admitted())
    site.gate.report(site.spec, CallOutcome.failed(timedelta(seconds=300)))

    site.clock.advance(seconds=299.9)
    assert not site.admit(gate=site.worker()).go
    site.clock.advance(seconds=0.1)
    assert site.admit(gate=site.worker()).go
