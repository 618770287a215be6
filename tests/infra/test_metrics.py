"""Each metric of the catalogue, with each of its sets of dimensions, has a reader in the template.

A metric that nothing reads costs 0.30 dollars a month for nothing.
"""

import json
from collections.abc import Iterator, Mapping
from itertools import product

import pytest

from tests.infra.alarm_states import sources
from tests.infra.conftest import Synthesize
from tests.infra.template import Template, named
from tests.infra.test_dashboard import DASHBOARD, shown
from webhook_inbox.domain.errors import Reason
from webhook_inbox.domain.metrics import CATALOGUE, REJECTED, VERIFIED_WITH_PREVIOUS, Metric, Use

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


# -- without a dashboard

# The values of the dimensions that alarms read, and others.
VALUES = {
    "outcome": ("done", "skipped", "held", "failed", "dead"),
    "reason": tuple(map(str, Reason)),
    "handler": ("shop.pay",),
    "source": ("shop",),
    "destination": ("erp",),
    "kind": ("retry",),
    "route": ("ANY /webhooks/shop",),
}
Written = set[tuple[str, frozenset[tuple[str, str]]]]


def written(metric: Metric) -> Iterator[Mapping[str, str]]:
    """Yields the dimensions under which a stack without a dashboard writes a metric."""
    names = sorted({name for each in metric.dimensions for name in each})
    for values in product(*(VALUES[name] for name in names)):
        named = dict(zip(names, values, strict=True))
        for found in metric.written(named, dashboard=False):
            yield {name: named[name] for name in found}


def test_without_a_dashboard_only_what_alarms_and_commands_read_is_written(dev: Template) -> None:
    alarmed: Written = {
        (source.name, frozenset(source.dimensions.items()))
        for properties in dev.all(ALARM).values()
        for source in sources(properties)
        if source.name in CATALOGUE
    }
    # The alarm ContestedEnrolments is that of sources whose provider delivers its secret.
    alarmed |= {(REJECTED.name, frozenset({("reason", str(Reason.CONTESTED_ENROLMENT))}))}
    asked: Written = {(VERIFIED_WITH_PREVIOUS.name, frozenset({("source", "shop")}))}
    found: Written = {
        (name, frozenset(dimensions.items()))
        for name, metric in CATALOGUE.items()
        for dimensions in written(metric)
    }
    assert found == alarmed | asked


def test_without_a_dashboard_its_metrics_are_not_written(
    dev: Template, synthesize: Synthesize
) -> None:
    bare = synthesize(dashboard=False)
    for template, expected in ((dev, "true"), (bare, None)):
        for properties in template.all("AWS::Lambda::Function").values():
            variables = properties["Environment"]["Variables"]
            assert variables.get("DASHBOARD") == expected
    [only] = bare.all(FILTER).values()
    assert only["MetricTransformations"][0]["MetricName"] == "Throttled"
