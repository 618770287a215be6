"""The CloudWatch dashboard of a stack."""

from collections.abc import Sequence
from typing import Final

from aws_cdk import Duration
from aws_cdk import aws_cloudwatch as cloudwatch
from constructs import Construct
from webhook_inbox_cdk.alarm_declaration import Series
from webhook_inbox_cdk.alarms import metric_of
from webhook_inbox_cdk.watched import (
    AGE,
    VISIBLE,
    Watched,
    of_function,
    of_logs,
    of_queue,
    of_table,
)

from webhook_inbox.domain import metrics
from webhook_inbox.domain.metrics import Duplicate

FIVE_MINUTES: Final = Duration.minutes(5)
WIDTH: Final = 8  # three widgets a row
SUCCESS: Final = "100 * (done + skipped) / (done + skipped + dead)"


class Dashboard(Construct):
    """Intake, processing, dead letters, destinations and cost drivers, a row for each."""

    def __init__(
        self, scope: Construct, construct_id: str, *, watched: Watched, log_groups: Sequence[str]
    ) -> None:
        super().__init__(scope, construct_id)
        self._watched = watched
        cloudwatch.Dashboard(
            self,
            "Board",
            default_interval=Duration.days(1),
            widgets=[
                self._intake(),
                self._refusals(),
                self._processing(),
                self._success(),
                self._dead_letters(),
                self._destinations(),
                self._cost_drivers(log_groups),
            ],
        )

    def _intake(self) -> list[cloudwatch.IWidget]:
        own, sources = self._watched.own, self._watched.manifest.sources
        accepted = [own(metrics.ACCEPTED, source=name) for name in sources]
        time = metrics.ACKNOWLEDGEMENT_TIME
        times = [own(time, "p50"), own(time, "p99"), self._watched.of_api("Latency", "p99")]
        return [
            _graph("Accepted events by source", accepted),
            _graph(
                "Known deliveries by kind", [own(metrics.DUPLICATES, kind=k) for k in Duplicate]
            ),
            _graph("Acknowledgement time, ms", times),
        ]

    def _refusals(self) -> list[cloudwatch.IWidget]:
        own, api = self._watched.own, self._watched.of_api
        held = (metrics.HELD_IDENTICAL, metrics.HELD_UNCERTAIN)
        refused = (metrics.REJECTED, metrics.CONFLICTS, *held, metrics.THROTTLED)
        sources = self._watched.manifest.sources
        previous = [own(metrics.VERIFIED_WITH_PREVIOUS, source=name) for name in sources]
        return [
            _graph("Refused and held deliveries", [own(each) for each in refused]),
            _search("Rejected by reason", self._watched, metrics.REJECTED),
            _graph("API: requests and errors", [api("Count"), api("4xx"), api("5xx")]),
            _graph("Verified with the previous secret", previous),
            _search("Throttled by route", self._watched, metrics.THROTTLED_BY_ROUTE),
        ]

    def _processing(self) -> list[cloudwatch.IWidget]:
        own, watched = self._watched.own, self._watched
        time = metrics.RECEIPT_TO_DONE
        ages = [of_queue(AGE, queue) for queue in watched.work.values()]
        waiting = own(metrics.OLDEST_DUE, "Maximum")
        return [
            _search("Runs by handler and outcome", watched, metrics.RUNS),
            _graph("Receipt to done, s", [own(time, "p50"), own(time, "p99")]),
            _graph("Queue age and oldest due run, s", [*ages, waiting]),
            _graph("Attempts of an ended run", [own(metrics.ATTEMPTS, "Average")]),
            _graph("Effects in doubt", [own(metrics.EFFECTS_IN_DOUBT)]),
            _graph("Degraded", [own(metrics.DEGRADED)]),
        ]

    def _success(self) -> list[cloudwatch.IWidget]:
        """The share of ended runs that are done, over 7 and over 28 days."""
        return [self._share(days) for days in (7, 28)]

    def _share(self, days: int) -> cloudwatch.SingleValueWidget:
        outcomes = {
            outcome: metric_of(
                self._watched.own(metrics.RUNS, outcome=outcome), Duration.days(days)
            )
            for outcome in ("done", "skipped", "dead")
        }
        filled = SUCCESS
        for outcome in outcomes:
            # A count of 0 is not written.
            filled = filled.replace(outcome, f"FILL({outcome}, 0)")
        share = cloudwatch.MathExpression(
            expression=filled,
            using_metrics=outcomes,
            period=Duration.days(days),
            label=f"{days} days, %",
        )
        return cloudwatch.SingleValueWidget(
            title=f"Successful runs of {days} days",
            metrics=[share],
            width=WIDTH,
            start=f"-P{days}D",
            end="P0D",
            set_period_to_time_range=True,
        )

    def _dead_letters(self) -> list[cloudwatch.IWidget]:
        own, watched = self._watched.own, self._watched
        dead, sent = own(metrics.RUNS, outcome="dead"), own(metrics.REPLAYED_RUNS)
        depths = [of_queue(VISIBLE, queue) for queue in watched.dead.values()]
        replayed = [own(metrics.REPLAYED_DONE), own(metrics.REPLAYED_DEAD)]
        return [
            _graph("Dead letters in and out", [dead, sent]),
            _graph("DLQ depth", depths),
            _graph("DLQ age, s", [own(metrics.OLDEST_DEAD_LETTER, "Maximum")]),
            _graph("Replayed runs", replayed),
        ]

    def _destinations(self) -> list[cloudwatch.IWidget]:
        return [
            _search("Open circuits", self._watched, metrics.CIRCUIT_OPEN, "Maximum"),
            _search("Wait at a rate limit, s", self._watched, metrics.LIMITER_QUEUE, "Maximum"),
        ]

    def _cost_drivers(self, log_groups: Sequence[str]) -> list[cloudwatch.IWidget]:
        watched = self._watched
        functions = (
            watched.ingest,
            *watched.processors.values(),
            watched.reconciler,
            watched.replay,
        )
        units = ("ConsumedWriteCapacityUnits", "ConsumedReadCapacityUnits")
        sent = [of_queue("NumberOfMessagesSent", each, "Sum") for each in watched.work.values()]
        return [
            _graph("Lambda duration, ms", [of_function("Duration", each) for each in functions]),
            _graph("Lambda invocations", [of_function("Invocations", each) for each in functions]),
            _graph("DynamoDB units", [of_table(name, watched.table) for name in units]),
            _graph("SQS messages", sent),
            _graph("Log bytes", [of_logs(group) for group in log_groups]),
        ]


def _graph(title: str, series: Sequence[Series]) -> cloudwatch.GraphWidget:
    left = [metric_of(each, FIVE_MINUTES) for each in series]
    return cloudwatch.GraphWidget(title=title, left=left, width=WIDTH)


def _search(
    title: str, watched: Watched, metric: metrics.Metric, statistic: str = "Sum"
) -> cloudwatch.GraphWidget:
    """Returns a graph of all values of a metric's last dimensions: routes, reasons, handlers."""
    # A namespace with a character that is not alphanumeric, such as a stack's dash, needs quotes.
    schema = ",".join((f'"{watched.namespace}"', *metric.dimensions[-1]))
    found = f'{{{schema}}} MetricName="{metric.name}"'
    search = cloudwatch.MathExpression(
        expression=f"SEARCH('{found}', '{statistic}', 300)",
        using_metrics={},
        label="",
        period=FIVE_MINUTES,
    )
    return cloudwatch.GraphWidget(title=title, left=[search], width=WIDTH)
