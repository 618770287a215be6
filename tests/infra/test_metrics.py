"""Each metric of the catalogue, with each of its sets of dimensions, has a reader in the template.

A metric that nothing reads costs 0.30 dollars a month for nothing.
"""

import json

import pytest

from tests.infra.alarm_states import sources
from tests.infra.template import Template, named
from tests.infra.test_dashboard import DASHBOARD, shown
from webhook_inbox.domain.metrics import CATALOGUE, Use

ALARM = "AWS::CloudWatch::Alarm"
FILTER = "AWS::Logs::MetricFilter"
# The name of a metric, and the names of its dimensions.
Read = set[tuple[str, frozenset[str]]]


@pytest.fixture(scope="module")
def alarmed(dev: Template) -> Read:
    return {
        (source.name, frozenset(source.dimensions))
        for properties in dev.all(ALARM).values()
        for source in sources(properties)
    }


@pytest.fixture(scope="module")
def displayed(dev: Template) -> Read:
    [board] = dev.all(DASHBOARD).values()
    widgets = [each["properties"] for each in json.loads(named(board["DashboardBody"]))["widgets"]]
    return {(name, frozenset(dimensions)) for _, name, dimensions in shown(widgets)}


def test_each_use_of_a_metric_is_in_the_template(alarmed: Read, displayed: Read) -> None:
    for use, read in ((Use.ALARM, alarmed), (Use.DASHBOARD, displayed)):
        expected = {name for name, metric in CATALOGUE.items() if use in metric.used}
        assert {name for name, _ in read} & CATALOGUE.keys() == expected


def test_each_combination_of_dimensions_that_is_paid_for_is_read(
    alarmed: Read, displayed: Read
) -> None:
    paid = {
        (name, frozenset(names))
        for name, metric in CATALOGUE.items()
        for names in metric.dimensions
    }

    assert paid - alarmed - displayed == set()


def test_the_filters_of_the_access_log_write_metrics_of_the_catalogue(dev: Template) -> None:
    written = {
        each["MetricName"]: tuple(entry["Key"] for entry in each.get("Dimensions", ()))
        for properties in dev.all(FILTER).values()
        for each in properties["MetricTransformations"]
    }

    assert set(written) == {"Throttled", "ThrottledByRoute"}
    for name, dimensions in written.items():
        assert CATALOGUE[name].dimensions == (dimensions,)
