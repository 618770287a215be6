"""The alarms of a stack, made of their declarations."""

from collections.abc import Iterator
from typing import Final

from aws_cdk import Duration, Stack
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_cloudwatch_actions as actions
from constructs import Construct
from webhook_inbox_cdk.alarm_declaration import (
    AlarmDeclaration,
    MissingData,
    Series,
)
from webhook_inbox_cdk.intake_alarms import intake_alarms
from webhook_inbox_cdk.maintenance_alarms import maintenance_alarms
from webhook_inbox_cdk.run_alarms import run_alarms
from webhook_inbox_cdk.topics import topics
from webhook_inbox_cdk.watched import Watched

from webhook_inbox.configuration.inbox_toml import AlarmSpec

_MISSING: Final = {
    MissingData.QUIET: cloudwatch.TreatMissingData.NOT_BREACHING,
    MissingData.FIRES: cloudwatch.TreatMissingData.BREACHING,
}


def declarations(watched: Watched) -> Iterator[AlarmDeclaration]:
    """Yields the declaration of each metric alarm of a stack."""
    for alarms in (intake_alarms, run_alarms, maintenance_alarms):
        for declared in alarms(watched):
            yield from declared.split()


class Alarms(Construct):
    """The alarms; SNS topics notify the addresses of `[alarms]` where there are any."""

    def __init__(
        self, scope: Construct, construct_id: str, *, watched: Watched, recipients: AlarmSpec
    ) -> None:
        super().__init__(scope, construct_id)
        self._topics = topics(self, recipients)
        for declared in declarations(watched):
            self._add(declared)

    def _add(self, declared: AlarmDeclaration) -> None:
        compare = cloudwatch.ComparisonOperator
        alarm = cloudwatch.Alarm(
            self,
            declared.id,
            metric=_metric(declared),
            threshold=declared.threshold,
            evaluation_periods=declared.periods,
            datapoints_to_alarm=declared.datapoints or None,
            comparison_operator=compare.LESS_THAN_OR_EQUAL_TO_THRESHOLD
            if declared.at_most
            else compare.GREATER_THAN_OR_EQUAL_TO_THRESHOLD,
            treat_missing_data=_MISSING[declared.missing],
            alarm_description=declared.description(Stack.of(self).stack_name),
        )
        if self._topics:
            action = actions.SnsAction(self._topics[declared.severity])
            alarm.add_alarm_action(action)
            alarm.add_ok_action(action)


def _metric(declared: AlarmDeclaration) -> cloudwatch.IMetric:
    period = Duration.seconds(declared.period)
    found = [metric_of(each, period) for each in declared.series]
    if not declared.expression:
        [only] = found
        return only
    return cloudwatch.MathExpression(
        expression=declared.expression,
        using_metrics={f"m{place}": each for place, each in enumerate(found, start=1)},
        period=period,
        label=declared.id,
    )


def metric_of(series: Series, period: Duration) -> cloudwatch.Metric:
    """Returns a series as CDK's metric."""
    return cloudwatch.Metric(
        namespace=series.namespace,
        metric_name=series.name,
        dimensions_map=series.dimensions,
        statistic=series.statistic,
        period=period,
    )
