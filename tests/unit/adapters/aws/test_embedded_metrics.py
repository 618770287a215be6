"""Metrics as lines of the log: few lines, no value lost, no dimension mixed up."""

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from webhook_inbox.adapters.aws.embedded_metrics import VALUES, MetricLines
from webhook_inbox.domain.metrics import Metric, Unit, Use

NOW = datetime(2026, 1, 1, tzinfo=UTC)
PLAIN = Metric("Plain", "of a test")
TIME = Metric("Time", "of a test", unit=Unit.MILLISECONDS)
BY_SOURCE = Metric("BySource", "of a test", (("source",),))
BY_BOTH = Metric("ByBoth", "of a test", (("outcome",), ("handler", "outcome")))


class Written:
    """The lines, and the points that CloudWatch makes of them."""

    def __init__(self) -> None:
        self.lines: list[dict[str, Any]] = []
        self.metrics = self.of_stack(dashboard=True)

    def of_stack(self, *, dashboard: bool) -> MetricLines:
        return MetricLines(
            "Test", dashboard=dashboard, write=lambda text: self.lines.append(json.loads(text))
        )

    def points(self) -> list[tuple[str, dict[str, str], list[float]]]:
        self.metrics.flush(NOW)
        return [
            (metric["Name"], {name: line[name] for name in names}, line[metric["Name"]])
            for line in self.lines
            for directive in line["_aws"]["CloudWatchMetrics"]
            for metric in directive["Metrics"]
            for names in directive["Dimensions"]
        ]


@pytest.fixture
def written() -> Written:
    return Written()


def test_a_line_has_the_form_of_the_specification(written: Written) -> None:
    written.metrics.add(TIME, 12.5)
    written.metrics.add(BY_SOURCE, source="github")

    written.metrics.flush(NOW)

    assert written.lines == [
        {
            "_aws": {
                "Timestamp": 1767225600000,
                "CloudWatchMetrics": [
                    {
                        "Namespace": "Test",
                        "Dimensions": [[]],
                        "Metrics": [{"Name": "Time", "Unit": "Milliseconds"}],
                    },
                    {
                        "Namespace": "Test",
                        "Dimensions": [["source"]],
                        "Metrics": [{"Name": "BySource", "Unit": "Count"}],
                    },
                ],
            },
            "source": "github",
            "Time": [12.5],
            "BySource": [1],
        }
    ]


def test_an_invocation_without_values_writes_nothing(written: Written) -> None:
    written.metrics.flush(NOW)

    assert written.lines == []


def test_values_of_one_metric_are_one_list(written: Written) -> None:
    for value in (1, 2, 3):
        written.metrics.add(TIME, value)

    assert written.points() == [("Time", {}, [1, 2, 3])]


def test_one_value_counts_under_each_set_of_dimensions(written: Written) -> None:
    written.metrics.add(BY_BOTH, handler="a", outcome="done")

    assert written.points() == [
        ("ByBoth", {"outcome": "done"}, [1]),
        ("ByBoth", {"handler": "a", "outcome": "done"}, [1]),
    ]
    assert len(written.lines) == 1


def test_a_dimension_with_two_values_takes_two_lines(written: Written) -> None:
    written.metrics.add(BY_SOURCE, source="a")
    written.metrics.add(BY_SOURCE, source="b")
    written.metrics.add(BY_BOTH, handler="h", outcome="done")
    written.metrics.add(PLAIN)

    points = written.points()

    assert len(written.lines) == 2
    assert ("BySource", {"source": "a"}, [1]) in points
    assert ("BySource", {"source": "b"}, [1]) in points
    assert len(points) == 5


def test_more_values_than_a_line_may_have_are_all_written(written: Written) -> None:
    for value in range(VALUES + 1):
        written.metrics.add(TIME, value)

    points = written.points()

    assert [len(values) for _, _, values in points] == [VALUES, 1]
    assert [value for _, _, values in points for value in values] == list(range(VALUES + 1))


def test_a_value_is_written_once(written: Written) -> None:
    written.metrics.add(PLAIN)
    written.metrics.flush(NOW)
    written.metrics.flush(NOW)

    assert len(written.lines) == 1


def test_the_first_line_is_returned_for_a_log_line_to_have_it(written: Written) -> None:
    written.metrics.add(BY_BOTH, handler="acme.fulfil", outcome="done")
    written.metrics.add(PLAIN, 3)

    taken = written.metrics.take(NOW, beside={"outcome": "done", "handler": "acme.fulfil"})

    assert written.lines == []
    assert (taken["ByBoth"], taken["Plain"], taken["outcome"]) == ([1], [3], "done")
    assert taken["_aws"]["Timestamp"] == 1767225600000
    assert written.metrics.take(NOW, beside={}) == {}


def test_a_log_line_with_another_value_of_a_dimension_does_not_have_its_metrics(
    written: Written,
) -> None:
    written.metrics.add(BY_BOTH, handler="none", outcome="dead")

    assert written.metrics.take(NOW, beside={"handler": "a-callers-text"}) == {}

    [line] = written.lines
    assert (line["handler"], line["ByBoth"]) == ("none", [1])


def test_what_does_not_fit_into_the_returned_line_is_written(written: Written) -> None:
    for source in ("github", "stripe"):
        written.metrics.add(BY_SOURCE, source=source)

    assert written.metrics.take(NOW, beside={"source": "stripe"})["source"] == "stripe"

    assert [line["source"] for line in written.lines] == ["github"]


# -- without a dashboard

DEAD = Metric("Dead", "of a test", BY_BOTH.dimensions, used=(Use.ALARM,), watched=("dead",))


def test_without_a_dashboard_only_what_alarms_read_is_written(written: Written) -> None:
    written.metrics = written.of_stack(dashboard=False)
    written.metrics.add(PLAIN)
    for outcome in ("done", "dead"):
        written.metrics.add(DEAD, handler="shop.pay", outcome=outcome)

    assert written.points() == [("Dead", {"outcome": "dead"}, [1])]
    assert [line.keys() for line in written.lines] == [{"_aws", "outcome", "Dead"}]


def test_without_a_dashboard_a_metric_that_only_one_reads_makes_no_line(written: Written) -> None:
    written.metrics = written.of_stack(dashboard=False)
    written.metrics.add(BY_SOURCE, source="github")

    assert written.metrics.take(NOW, beside={"source": "github"}) == {}
    assert written.points() == []
