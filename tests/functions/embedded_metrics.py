"""Reads the metrics of a log line as CloudWatch does, and compares them with the catalogue."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from webhook_inbox.domain.metrics import CATALOGUE

NAMESPACE = "WebhookInbox/Account"


class Point(NamedTuple):
    """The values of one metric under one set of dimensions."""

    name: str
    values: list[float]
    dimensions: Mapping[str, str]


def points(entry: Mapping[str, Any]) -> list[Point]:
    """Returns the metrics of a log line; fails where one is not as the catalogue has it."""
    found: list[Point] = []
    for directive in entry.get("_aws", {}).get("CloudWatchMetrics", ()):
        assert directive["Namespace"] == NAMESPACE
        for declared in directive["Metrics"]:
            metric = CATALOGUE[declared["Name"]]
            assert declared["Unit"] == metric.unit
            sets = tuple(tuple(names) for names in directive["Dimensions"])
            assert sets in (metric.dimensions, metric.written(entry, dashboard=False))
            for names in directive["Dimensions"]:
                dimensions = {name: entry[name] for name in names}
                assert all(dimensions.values())
                found.append(Point(metric.name, entry[metric.name], dimensions))
    return found
