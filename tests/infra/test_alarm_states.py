"""The states of the alarms, computed from recorded metrics with each alarm's own expression."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest

from tests.infra.alarm_states import (
    AlarmState,
    Recorded,
    Value,
    evaluate,
    sources,
    state,
    statistic,
)
from tests.infra.template import Properties, Template
from tests.infra.test_alarms import ALARM, alarm, alarm_id

NOW = 100_000.0
MINUTE = 60
DAY = 86_400
# Values of m1, m2, … in a minute, counted back from now; None where no value is written.
Values = Callable[[int], Sequence[float | Sequence[float] | None]]


def each(*values: float | Sequence[float] | None) -> Values:
    """The same in every minute."""
    return lambda _: values


def during(first: int, last: int, *values: float | Sequence[float] | None) -> Values:
    """Values in the minutes from `first` to `last`, 1 the latest, and none outside."""
    return lambda minute: values if first <= minute <= last else [None] * len(values)


def at(minutes: Sequence[int], value: float) -> Values:
    """A value of m1 in these minutes."""
    return lambda minute: [value if minute in minutes else None]


def growing(by: float) -> Values:
    """A depth that changes by this much in a minute."""
    return lambda minute: [max(10_000 - minute * by, 0)]


# For each alarm: what keeps it quiet at the edge, and what makes it fire.
CASES: dict[str, tuple[Values, Values]] = {
    "IntakeFailing": (
        lambda minute: [50 if minute in {1, 9} else None, 0, 0],
        lambda minute: [1 if minute in {1, 5, 10} else None, None, None],
    ),
    "ApiErrors": (at([4], 1), at([1], 1)),
    "IngestSlow": (
        each([100.0] * 99 + [9_000.0]),  # 1 % may be slow: p99 is the slowest of the others
        each([100.0] * 49 + [9_000.0]),
    ),
    "Throttled": (at([4], 1), at([1], 1)),
    "RejectedRate": (during(1, 15, 1, [1.0] * 3), during(1, 15, 2, [1.0] * 10)),
    "Conflicts": (at([16], 1), at([5], 1)),
    "HeldUncertain": (at([16], 1), at([5], 1)),
    "HeldIdentical": (at([16], 1), at([5], 1)),
    "DeadLetters": (at([26], 1), at([15], 1)),
    "DeadLetterBurst": (at([1, 3, 5, 9], 1), at([1, 3, 5, 7, 9], 1)),
    "DeadAgain": (at([16], 1), at([5], 1)),
    "EffectsInDoubt": (at([16], 1), at([5], 1)),
    "DlqGrowing": (lambda m: [*growing(1)(m), *growing(-1)(m)], lambda m: [*growing(1)(m), 5]),
    "DlqAge": (each(10 * DAY - 1), at([70], 10 * DAY)),
    "OldestDue": (each(3_599), each(3_600)),
    "Backlog": (each(899, 0), each(0, 900)),
    "ProcessorCrashes": (during(1, 2, 1, 1), during(1, 3, 1, None)),
    "FunctionThrottles": (during(1, 9, 1, 1), each(1, None)),
    "DestinationRefusals": (at([16], 1), at([5], 1)),
    "TableThrottles": (during(1, 9, 1, 1), each(None, 1)),
    "ReconcilerLate": (each(1, 0), each(1, 1)),
    "Degraded": (at([1, 2, 3, 4], 1), at([1, 4, 7, 10, 13], 1)),
    "RunsGivenUp": (at([16], 1), at([5], 1)),
    "RunsNearExpiry": (each(None), at([23 * 60], 1)),
    "ReplayErrors": (at([16], 1), at([5], 1)),
    "ReplayInterrupted": (at([16], 1), at([5], 1)),
}


def recorded(properties: Properties, values: Values) -> Recorded:
    """What CloudWatch has of the alarm's metrics, for a bit over a day."""
    found = Recorded()
    for minute in range(1, 25 * 60):
        for source, value in zip(sources(properties), values(minute), strict=True):
            if value is not None:
                every = [value] if isinstance(value, int | float) else value
                found.add(source, NOW - minute * MINUTE, *every)
    return found


def test_every_alarm_has_a_case(dev: Template) -> None:
    assert {alarm_id(each) for each in dev.all(ALARM)} == CASES.keys()


@pytest.mark.parametrize("name", CASES)
def test_an_alarm_is_quiet_below_its_condition_and_fires_at_it(dev: Template, name: str) -> None:
    properties = alarm(dev, name)
    quiet, firing = CASES[name]
    assert state(properties, recorded(properties, quiet), NOW) is AlarmState.OK
    assert state(properties, recorded(properties, firing), NOW) is AlarmState.ALARM


def test_without_any_value_only_the_late_reconciler_fires(dev: Template) -> None:
    """An inbox without traffic is quiet; a stopped schedule writes nothing either."""
    firing = {
        alarm_id(name)
        for name, properties in dev.all(ALARM).items()
        if state(properties, Recorded(), NOW) is not AlarmState.OK
    }
    assert firing == {"ReconcilerLate"}


@pytest.mark.parametrize("place", range(3), ids=["outcomes", "errors", "throttles"])
def test_each_kind_of_failure_of_ingest_pages_in_the_third_minute(
    dev: Template, place: int
) -> None:
    properties = alarm(dev, "IntakeFailing")

    def failing(minutes: int) -> Values:
        return lambda minute: [
            (1 if minute <= minutes else 0) if metric == place else None for metric in range(3)
        ]

    assert state(properties, recorded(properties, failing(2)), NOW) is AlarmState.OK
    assert state(properties, recorded(properties, failing(3)), NOW) is AlarmState.ALARM


def test_kinds_of_failures_of_ingest_add_up(dev: Template) -> None:
    properties = alarm(dev, "IntakeFailing")
    values = {1: [1, 0, None], 4: [None, 1, 0], 9: [None, 0, 1]}
    found = recorded(properties, lambda minute: values.get(minute, [None, 0, 0]))
    assert state(properties, found, NOW) is AlarmState.ALARM


def test_rejections_need_a_share_and_a_number(dev: Template) -> None:
    properties = alarm(dev, "RejectedRate")
    single = during(1, 4, 1, [1.0])  # all of 4 deliveries
    flood = during(1, 15, 10, [1.0] * 101)  # 150, which is not 10 % of 1,515
    for values in (single, flood):
        assert state(properties, recorded(properties, values), NOW) is AlarmState.OK


def test_a_wrong_secret_is_noticed_in_an_inbox_with_few_deliveries(dev: Template) -> None:
    properties = alarm(dev, "RejectedRate")
    half = during(1, 5, 1, [1.0] * 2)  # 5 of 10 deliveries
    assert state(properties, recorded(properties, half), NOW) is AlarmState.ALARM


def test_dead_letters_that_are_drained_as_fast_do_not_grow(dev: Template) -> None:
    properties = alarm(dev, "DlqGrowing")
    found = recorded(properties, lambda m: [50 + (m // 5) % 2, None])
    assert state(properties, found, NOW) is AlarmState.OK


def test_a_series_of_dead_letters_notifies_once_and_the_next_series_again(dev: Template) -> None:
    """The alarm stays on from the first until a quarter of an hour after the last."""
    properties = alarm(dev, "DeadLetters")
    found = recorded(properties, at([1, 10, 20, 60], 1))
    states = [state(properties, found, NOW - back * MINUTE) for back in range(60)]
    assert states[:20] == [AlarmState.ALARM] * 20
    assert AlarmState.OK in states[21:34]


def test_passes_that_end_by_an_error_do_not_count(dev: Template) -> None:
    properties = alarm(dev, "ReconcilerLate")
    most = recorded(properties, lambda minute: [1, minute % 5 < 3])
    assert state(properties, most, NOW) is AlarmState.ALARM
    some = recorded(properties, lambda minute: [1, minute % 5 < 2])
    assert state(properties, some, NOW) is AlarmState.OK


@pytest.mark.parametrize(
    ("text", "values"),
    [("DIFF(m1)", [None, None, 2, -1]), ("MAX([m1, m2])", [1, 4, 3, 2])],
)
def test_metric_math_leaves_missing_values_missing(text: str, values: list[Value]) -> None:
    assert evaluate(text, {"m1": [1, None, 3, 2], "m2": [None, 4, None, 1]}) == values


@pytest.mark.parametrize(
    "text", ["RATE(m1)", "FILL(m1, 0)", "m1 % m2", "m1 > 1", "SUM(METRICS(m1))"]
)
def test_metric_math_that_no_alarm_uses_is_an_error(text: str) -> None:
    with pytest.raises(ValueError, match="unknown"):
        evaluate(text, {"m1": [1.0], "m2": [1.0]})


def test_other_statistics_and_treatments_are_errors(dev: Template) -> None:
    with pytest.raises(ValueError, match="Average"):
        statistic("Average", [1])
    changed: Mapping[str, Any] = {**alarm(dev, "ApiErrors"), "TreatMissingData": "ignore"}
    with pytest.raises(ValueError, match="ignore"):
        state(dict(changed), Recorded(), NOW)


def test_insufficient_data_is_of_alarms_that_treat_missing_as_missing(dev: Template) -> None:
    changed = {**alarm(dev, "ApiErrors"), "TreatMissingData": "missing"}
    assert state(changed, Recorded(), NOW) is AlarmState.INSUFFICIENT_DATA
