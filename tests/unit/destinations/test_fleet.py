"""Many workers at one destination: the rate, the waits and the outage as seen from outside."""

from dataclasses import replace
from math import floor
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.destinations.fleet import (
    Fleet,
    Habits,
    Visit,
    most_in_a_window,
    starts,
    strict_waits,
)
from tests.unit.destinations.site import BREAKER, CRM
from webhook_inbox.destinations.circuit import CallOutcome
from webhook_inbox.destinations.rate_limiter import HEADROOM

# What no twice of a short wait could cover: SQS delays whole seconds, and who comes late itself
# takes a reservation from the next ones.
GRAIN_SECONDS, GRAIN_STEPS = 3.0, 3.0
ALLOWED = 1.05

habits = st.builds(
    Habits,
    workers=st.sampled_from([10, 40, 100]),
    skew=st.sampled_from([0.0, 0.005, 0.012]),
    handler=st.sampled_from([0.05, 0.3, 0.5]),
    call=st.sampled_from([0.05, 0.2, 1.0]),
    jitter=st.sampled_from([0.05, 0.3, 0.9]),
    late_share=st.sampled_from([0.0, 0.02, 0.1]),
    late=st.sampled_from([2.0, 10.0, 20.0]),
)
rates = st.sampled_from([1.0, 2.0, 3.0, 7.0, 10.0, 15.0, 50.0, 120.0])
bursts = st.lists(
    st.tuples(
        st.floats(0, 60),  # when it begins
        st.integers(1, 120),  # how many runs
        st.sampled_from([0.001, 1.0, 10.0]),  # over how many seconds
    ),
    min_size=1,
    max_size=4,
)


def crowd(shape: list[tuple[float, int, float]], seed: int) -> list[float]:
    randomness = Random(seed)
    return [at + randomness.uniform(0, over) for at, count, over in shape for _ in range(count)]


def excess(visits: list[Visit], rate: float) -> float:
    """Returns how many times the rate the busiest window of ten seconds saw."""
    return most_in_a_window(starts(visits)) / (10 * rate)


@settings(max_examples=60, derandomize=True)
@given(rate=rates, habits=habits, shape=bursts, seed=st.integers(0, 1000))
def test_the_rate_is_kept_and_no_run_waits_three_times_as_long_as_in_strict_order(
    rate: float, habits: Habits, shape: list[tuple[float, int, float]], seed: int
) -> None:
    fleet = Fleet(replace(CRM, rate=rate), habits, seed=seed)

    visits = fleet.run(crowd(shape, seed))

    assert most_in_a_window(starts(visits)) <= floor(ALLOWED * 10 * rate)
    in_order = sorted(visits, key=lambda one: one.came)
    for visit, strict in zip(in_order, strict_waits(visits, rate / HEADROOM), strict=True):
        assert visit.waited <= 3 * strict + GRAIN_SECONDS + GRAIN_STEPS / rate


@settings(max_examples=20, derandomize=True)
@given(rate=st.sampled_from([0.05, 0.1, 0.15, 0.2, 0.33, 0.5]), seed=st.integers(0, 1000))
def test_a_rate_below_one_a_second_is_kept_as_well(rate: float, seed: int) -> None:
    fleet = Fleet(replace(CRM, rate=rate), Habits(late_share=0.1), seed=seed)

    visits = fleet.run(crowd([(0, 10, 1.0), (30, 3, 1.0)], seed))

    # An even schedule has so many in its busiest window.
    assert most_in_a_window(starts(visits)) <= max(1, -(-10 * rate // 1))


@pytest.mark.parametrize(("calls", "handler"), [(2, 0.1), (5, 0.1), (1, 3.0)])
@pytest.mark.parametrize("workers", [40, 100])
def test_handlers_with_several_calls_or_a_late_one_waste_no_slot(
    calls: int, handler: float, workers: int
) -> None:
    habits = Habits(workers=workers, handler=handler, call=0.4, calls=calls)
    fleet = Fleet(replace(CRM, rate=10.0), habits, seed=1)

    visits = fleet.run([n / 1000 for n in range(300)])

    made = sorted(time for visit in visits for time in visit.calls)
    assert most_in_a_window(made) <= 105
    assert len(made) <= 300 * calls * 1.05
    assert made[-1] - made[0] <= 30 * calls * HEADROOM * 1.1


@pytest.mark.parametrize("workers", [4, 30])
def test_a_rate_that_is_asked_for_is_reached(workers: int) -> None:
    fleet = Fleet(replace(CRM, rate=10.0), Habits(workers=workers), seed=workers)

    begun = starts(fleet.run([n / 1000 for n in range(600)]))

    assert begun[-1] - begun[0] <= 60 * HEADROOM * 1.02
    assert most_in_a_window(begun) <= 105


def test_a_load_below_the_rate_hardly_waits() -> None:
    fleet = Fleet(replace(CRM, rate=10.0), Habits(handler=3.0), seed=3)
    randomness = Random(4)

    visits = fleet.run([randomness.uniform(0, 60) for _ in range(480)])

    assert max(visit.waited for visit in visits) < 3
    assert sum(visit.trips for visit in visits) == 0


def test_when_everything_stood_still_all_begin_at_the_rate() -> None:
    """No worker received a message for ten minutes: all turns of that time are missed."""
    fleet = Fleet(replace(CRM, rate=10.0), Habits(workers=50), seed=7)
    for number in range(300):
        visit = Visit(number / 1000)
        fleet.visits.append(visit)
        fleet._admit(number / 1000, fleet._idle.pop(), visit)
        fleet._idle.append(fleet._worker(number))
    fleet._events = [(600 + n / 1000, n, fleet._comes(v)) for n, v in enumerate(fleet.visits)]

    visits = fleet.run([600.5 + n / 1000 for n in range(200)])

    missed = [v.began or 0 for v in visits if v.came < 1]
    assert most_in_a_window(starts(visits)) <= 105
    assert max(missed) <= 600 + 50 * HEADROOM * 1.05


# -- blocks


def test_at_1000_a_second_the_rate_is_kept_with_few_writes() -> None:
    fleet = Fleet(replace(CRM, rate=1000.0), Habits(workers=100, handler=0.02, call=0.02), seed=1)
    writes = 0

    def count(service: str, operation: str) -> None:
        nonlocal writes
        writes += operation == "UpdateItem"

    fleet.table.faults = count

    begun = starts(fleet.run([n / 3000 for n in range(6000)]))

    assert most_in_a_window(begun, 1.0) <= 1050
    took = begun[-1] - begun[0]
    assert took <= 6 * HEADROOM * 1.7
    assert writes / took <= 1000  # what one row can take


def test_at_1000_a_second_workers_that_call_rarely_waste_less_than_half() -> None:
    fleet = Fleet(replace(CRM, rate=1000.0), Habits(workers=300, call=0.2), seed=1)

    begun = starts(fleet.run([n / 2000 for n in range(4000)]))

    assert begun[-1] - begun[0] <= 4 * HEADROOM * 2


# -- an outage


def test_few_runs_call_a_destination_that_is_down_and_all_call_when_it_is_up() -> None:
    def answer(time: float) -> CallOutcome:
        return CallOutcome.failed() if 5 <= time < 100 else CallOutcome.ok()

    fleet = Fleet(
        replace(CRM, breaker=BREAKER), Habits(workers=20, call=0.1), seed=2, answer=answer
    )
    visits = fleet.run([n * 0.25 for n in range(480)], end=1000)

    begun = starts(visits)
    down = [time for time in begun if 7 <= time < 100]
    drained = sorted(v.began for v in visits if v.began and v.trips)
    assert len(down) <= 3  # a probe when it opened first, and again after each recovery
    assert len([time for time in begun if 5 <= time < 7]) <= 20
    assert most_in_a_window(drained) <= 12 * BREAKER.drain
    assert max(drained) <= 126 + 480 / BREAKER.drain * HEADROOM


def test_while_a_destination_is_down_no_wait_is_twice_as_long_as_it_had_to_be() -> None:
    """It opens again and again; with each recovery those who came first come first."""

    def answer(time: float) -> CallOutcome:
        return CallOutcome.failed() if time < 400 else CallOutcome.ok()

    fleet = Fleet(
        replace(CRM, rate=20.0, breaker=BREAKER), Habits(workers=20), seed=5, answer=answer
    )
    visits = fleet.run([n * 0.5 for n in range(600)], end=5000)

    up = 400 + BREAKER.recovery  # when it is known at the latest
    for place, visit in enumerate(sorted(visits, key=lambda one: one.came)):
        assert visit.began is not None
        strict = up + place / BREAKER.drain - visit.came
        assert visit.began - visit.came <= 2 * strict
