"""The dashboard and the saved queries: each refers to what the stack has and its code writes."""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from webhook_inbox_cdk.saved_queries import QUERIES

from tests.infra.alarm_states import sources
from tests.infra.conftest import Synthesize
from tests.infra.template import Template, named
from webhook_inbox.domain import metrics

DASHBOARD = "AWS::CloudWatch::Dashboard"
QUERY = "AWS::Logs::QueryDefinition"
# AWS's own metrics that no catalogue of ours has, all without a charge.
OWN = "WebhookInbox/Inbox"
# The fields of the log lines, in `functions/*/telemetry.py`.
FIELDS = {
    "actor",
    "detail",
    "duration_ms",
    "error_class",
    "error_line",
    "event_id",
    "handler",
    "outcome",
    "reason",
    "selection",
    "source",
    "trace_id",
    # Powertools writes these into each line.
    *("level", "message", "service"),
    # Lambda's lines about an invocation that it ended, or an error outside of ours.
    *("record", "status", "errorMessage"),
}
SEARCH = re.compile(r"SEARCH\('\{(\"[^}]*)\} MetricName=\"(\w+)\"', '(Sum|Maximum)', 300\)")
# Words of the query language that are no fields.
LANGUAGE = {
    *("fields", "filter", "sort", "stats", "limit", "asc", "desc", "by", "as", "and", "count"),
    *("ispresent", "latest", "count_distinct", "or", "in"),
}


@pytest.fixture(scope="module")
def widgets(dev: Template) -> list[dict[str, Any]]:
    """The widgets' properties, references written as `${Id}`."""
    [board] = dev.all(DASHBOARD).values()
    return [each["properties"] for each in json.loads(named(board["DashboardBody"]))["widgets"]]


def shown(widgets: list[dict[str, Any]]) -> Iterator[tuple[str, str, Mapping[str, str]]]:
    """The namespace, name and dimensions of each metric, those of searches without values."""
    for widget in widgets:
        for entry in widget["metrics"]:
            if isinstance(entry[0], str):
                pairs = [each for each in entry[2:] if isinstance(each, str)]
                yield entry[0], entry[1], dict(zip(pairs[::2], pairs[1::2], strict=True))
            elif found := SEARCH.fullmatch(entry[0]["expression"]):
                namespace, *dimensions = found[1].split(",")
                yield namespace.strip('"'), found[2], dict.fromkeys(dimensions, "")


def test_every_widget_shows_a_metric_that_the_code_writes(
    dev: Template, widgets: list[dict[str, Any]]
) -> None:
    for namespace, name, dimensions in shown(widgets):
        if namespace == OWN:
            declared = metrics.CATALOGUE[name]
            assert tuple(dimensions) in declared.dimensions
            assert metrics.Use.DASHBOARD in declared.used, name
        else:
            assert name in metrics.OF_AWS[namespace]
            for value in dimensions.values():
                assert value[2:-1].partition(".")[0] in dev.ids


def test_each_listed_metric_of_aws_is_on_the_dashboard_or_in_an_alarm(
    dev: Template, widgets: list[dict[str, Any]]
) -> None:
    alarms = dev.all("AWS::CloudWatch::Alarm").values()
    watched = {(each.namespace, each.name) for one in alarms for each in sources(one)}
    used = watched | {(namespace, name) for namespace, name, _ in shown(widgets)}
    listed = {(space, name) for space, names in metrics.OF_AWS.items() for name in names}
    assert {each for each in used if each[0].startswith("AWS/")} == listed


def test_every_metric_for_the_dashboard_has_a_widget(widgets: list[dict[str, Any]]) -> None:
    named_there = {name for namespace, name, _ in shown(widgets) if namespace == OWN}
    for name, declared in metrics.CATALOGUE.items():
        if metrics.Use.DASHBOARD in declared.used:
            assert name in named_there


def test_every_widget_has_a_title_and_a_metric_of_its_region(
    widgets: list[dict[str, Any]],
) -> None:
    titles = [widget["title"] for widget in widgets]
    assert len(set(titles)) == len(titles)
    for widget in widgets:
        assert widget["metrics"]
        assert widget["region"] == "${AWS::Region}"


def test_success_is_the_share_of_done_and_skipped_among_ended_runs(
    widgets: list[dict[str, Any]],
) -> None:
    for days in (7, 28):
        [widget] = [each for each in widgets if each["title"] == f"Successful runs of {days} days"]
        texts = [e[0]["expression"] for e in widget["metrics"] if isinstance(e[0], dict)]
        done, skipped, dead = (f"FILL({name}, 0)" for name in ("done", "skipped", "dead"))
        assert texts == [f"100 * ({done} + {skipped}) / ({done} + {skipped} + {dead})"]
        assert widget["start"] == f"-P{days}D"


def test_without_a_dashboard_the_queries_remain(synthesize: Synthesize) -> None:
    """It costs 3 dollars a month; the queries cost nothing until they run."""
    template = synthesize(dashboard=False)
    assert not template.all(DASHBOARD)
    assert template.all(QUERY)


def test_each_query_reads_the_functions_log_groups(dev: Template) -> None:
    functions = dev.all("AWS::Lambda::Function").values()
    groups = sorted(named(each["LoggingConfig"]["LogGroup"]) for each in functions)
    found = dev.all(QUERY).values()
    assert {each["Name"] for each in found} == {f"Inbox/{name}" for name in QUERIES}
    for each in found:
        assert sorted(map(named, each["LogGroupNames"])) == groups


@pytest.mark.parametrize("name", QUERIES)
def test_a_query_reads_only_fields_of_the_log_lines(name: str) -> None:
    query = re.sub(r'"[^"]*"', "", QUERIES[name])
    made = set(re.findall(r"\bas (\w+)", query))
    words = set(re.findall(r"(?<![@\w])[a-zA-Z_]+", query)) - LANGUAGE - made
    assert words <= FIELDS
    assert words
