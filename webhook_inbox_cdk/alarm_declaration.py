"""The form in which an alarm is declared: data, of which `alarms.py` makes resources."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Final, Self

from webhook_inbox.domain.metrics import Metric

# An expression of more series needs a second alarm:
# https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/cloudwatch_limits.html
SERIES_LIMIT: Final = 10
MINUTE: Final = 60
HOUR: Final = 3_600


class Severity(StrEnum):
    """The topic that an alarm notifies."""

    NOTIFY = "notify"  # read it in working hours: nothing is lost until then
    PAGE = "page"  # wake the on-call engineer: deliveries are lost, or work has stopped


class MissingData(StrEnum):
    """CloudWatch's treatment of a period without a value."""

    QUIET = "notBreaching"  # a count of 0 is not written
    FIRES = "breaching"


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """One metric with its dimensions and its statistic, such as Sum, Maximum or p99."""

    namespace: str
    name: str
    statistic: str = "Sum"
    dimensions: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class AlarmDeclaration:
    """One alarm.

    Attributes:
        id: its name in the stack; a suffix after a dash is a handler's or a group's.
        severity: the topic that it notifies.
        series: the metrics m1, m2, … of its expression; the one metric without an expression.
        combine: MAX or SUM, which combines any number of series; more than ten make several alarms.
        expression: metric math, in which `all` is the combined series; "" for the metric itself.
        period: seconds.
        threshold: it is breached by a value of at least this, or with `at_most` of at most this.
        periods: the periods that are evaluated.
        datapoints: how many of them must breach the threshold, 0 for all.
        missing: the treatment of a period without a value.
        text: the condition, its effect and its cause, without commands: they are in the runbook.
        first: the first command, without `webhookctl`; it changes nothing.
    """

    id: str
    severity: Severity = Severity.NOTIFY
    series: tuple[Series, ...]
    combine: str = ""
    expression: str = ""
    period: int = 5 * MINUTE
    threshold: float = 1
    at_most: bool = False
    periods: int = 1
    datapoints: int = 0
    missing: MissingData = MissingData.QUIET
    text: str
    first: str

    def split(self) -> Iterator[Self]:
        """Yields an alarm for each group of at most ten series to combine: Backlog, Backlog-2."""
        if not self.combine:
            yield self
            return
        for start in range(0, len(self.series), SERIES_LIMIT):
            suffix = f"-{start // SERIES_LIMIT + 1}" if start else ""
            group = self.series[start : start + SERIES_LIMIT]
            names = ", ".join(f"m{place}" for place, _ in enumerate(group, start=1))
            every = f"{self.combine}([{names}])" if len(group) > 1 else "m1"
            single = len(group) == 1 and not self.expression
            expression = "" if single else (self.expression or "all").replace("all", every)
            yield replace(self, id=self.id + suffix, series=group, expression=expression)

    @property
    def anchor(self) -> str:
        """The anchor of its page in the runbook: DlqGrowing-2 has `dlq-growing`."""
        return anchor(self.id)

    def description(self, stack: str) -> str:
        """Returns the text of its notifications, with commands for a stack."""
        return describe(
            self.text, first=self.first, severity=self.severity, page=self.anchor, stack=stack
        )


def describe(text: str, *, first: str, severity: Severity, page: str, stack: str) -> str:
    """Returns an alarm's text: the condition, the first command, severity and runbook page."""
    program = f"webhookctl --stack {stack}"
    return (
        f"{text} First: `{program} {first}`. Severity: {severity}."
        f" Runbook: `{program} runbook {page}`"
    )


def anchor(alarm_id: str) -> str:
    """Returns the anchor of an alarm's page in the runbook: `RunsGivenUp` has `runs-given-up`."""
    return re.sub(r"(?<!^)(?=[A-Z])", "-", alarm_id.partition("-")[0]).lower()


def of_inbox(namespace: str, metric: Metric, statistic: str = "Sum", **dimensions: str) -> Series:
    """Returns the series of a metric that the functions write.

    CloudWatch identifies a metric by its name and all its dimensions, so these are checked against
    the catalogue.
    """
    if tuple(dimensions) not in metric.dimensions:
        raise ValueError(f"{metric.name} has the dimensions {metric.dimensions}: {dimensions}")
    return Series(namespace=namespace, name=metric.name, statistic=statistic, dimensions=dimensions)
