"""The alarms of a stack, made of their declarations."""

from collections.abc import Iterator, Mapping
from typing import Final

from aws_cdk import Duration, Fn, Stack
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_cloudwatch_actions as actions
from constructs import Construct
from webhook_inbox_cdk.alarm_declaration import (
    AlarmDeclaration,
    MissingData,
    Series,
    Severity,
    anchor,
    describe,
)
from webhook_inbox_cdk.intake_alarms import intake_alarms
from webhook_inbox_cdk.maintenance_alarms import maintenance_alarms
from webhook_inbox_cdk.run_alarms import run_alarms
from webhook_inbox_cdk.topics import topics
from webhook_inbox_cdk.watched import Watched

from webhook_inbox.configuration.inbox_toml import AlarmSpec

# An outage; while one of them is on, its consequences do not notify. They page by themselves: a
# composite of them would hide the second cause while the first lasts.
ROOTS: Final = ("IntakeFailing", "ProcessorCrashes", "ReconcilerLate")
CONSEQUENCES: Final = "Consequences"
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
        declared = {each.id: each for each in declarations(watched)}
        made = {name: self._alarm(each) for name, each in declared.items()}
        self._consequences(declared, made)

    def _alarm(self, declared: AlarmDeclaration) -> cloudwatch.Alarm:
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
        if self._topics and not declared.consequence:
            action = actions.SnsAction(self._topics[declared.severity])
            alarm.add_alarm_action(action)
            alarm.add_ok_action(action)
        return alarm

    def _consequences(
        self, declared: Mapping[str, AlarmDeclaration], made: Mapping[str, cloudwatch.Alarm]
    ) -> None:
        """Adds the composite alarm: one notification for all consequences, none in an outage."""
        followers = [made[name] for name, each in declared.items() if each.consequence]
        roots = [alarm for name, alarm in made.items() if name.partition("-")[0] in ROOTS]
        text = describe(
            "One or more of the alarms that an outage causes are on, and no outage is:"
            f" {', '.join(ROOTS)} are off. The list shows which. This alarm notifies once; another"
            " one that follows changes only the list.",
            first="alarms list",
            severity=Severity.NOTIFY,
            page=anchor(CONSEQUENCES),
            stack=Stack.of(self).stack_name,
        )
        composite = cloudwatch.CfnCompositeAlarm(
            self,
            CONSEQUENCES,
            alarm_rule=Fn.join("", ["(", *_any(followers), ") AND NOT (", *_any(roots), ")"]),
            alarm_description=text,
        )
        if self._topics:
            topic = self._topics[Severity.NOTIFY].topic_arn
            composite.alarm_actions = [topic]
            composite.ok_actions = [topic]


def _any(alarms: list[cloudwatch.Alarm]) -> Iterator[str]:
    """Yields the parts of a rule: at least one of these alarms is on."""
    for place, alarm in enumerate(alarms):
        yield f'{" OR " if place else ""}ALARM("'
        yield alarm.alarm_name
        yield '")'


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
