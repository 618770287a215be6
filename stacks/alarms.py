"""What wakes somebody: dead letters, a backlog, failing intake."""

from collections.abc import Sequence

from aws_cdk import Duration
from aws_cdk import aws_apigatewayv2 as apigatewayv2
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_cloudwatch_actions as actions
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_sns as sns
from aws_cdk import aws_sns_subscriptions as subscriptions
from constructs import Construct

from stacks.queue import Lane

MINUTE = Duration.minutes(1)


class Alarms(Construct):
    """The alarms, and the topic that tells people where `[alarms]` names any."""

    def __init__(self, scope: Construct, construct_id: str, *, addresses: Sequence[str]) -> None:
        super().__init__(scope, construct_id)
        self.topic = self._topic(addresses) if addresses else None

    def watch_lane(self, lane: Lane) -> None:
        """Alarms on dead letters, and on work that waits for a quarter of an hour."""
        # Not NumberOfMessagesSent: it stays 0 for what SQS itself moves.
        self._alarm(
            f"DeadLetters-{lane.name}",
            lane.dead.metric_approximate_number_of_messages_visible(
                period=MINUTE, statistic="Maximum"
            ),
            at_least=1,
            text=f"Runs of lane {lane.name} were given up; see `webhookctl inbox list`.",
        )
        self._alarm(
            f"Backlog-{lane.name}",
            lane.work.metric_approximate_age_of_oldest_message(period=MINUTE, statistic="Maximum"),
            at_least=900,
            periods=5,
            text=f"Work of lane {lane.name} waits for over 15 minutes.",
        )

    def watch_intake(self, api: apigatewayv2.IHttpApi, ingest: lambda_.IFunction) -> None:
        """Alarms on answers that make providers retry, and on crashes of ingest."""
        self._alarm(
            "IntakeErrors",
            api.metric_server_error(period=MINUTE, statistic="Sum"),
            at_least=1,
            periods=3,
            text="Providers get 5xx answers and retry; see ingest's logs.",
        )
        self._alarm(
            "IngestCrashes",
            ingest.metric_errors(period=MINUTE, statistic="Sum"),
            at_least=1,
            text="Ingest raised an error; see its logs.",
        )

    def _topic(self, addresses: Sequence[str]) -> sns.Topic:
        # Unencrypted on purpose: CloudWatch may not use the account's own key for SNS, and an
        # alarm's text holds nothing secret.
        topic = sns.Topic(self, "Topic", display_name="webhook-inbox", enforce_ssl=True)
        for address in addresses:
            kind, _, rest = address.partition(":")
            topic.add_subscription(
                subscriptions.EmailSubscription(rest)
                if kind == "mailto"
                else subscriptions.UrlSubscription(address)
            )
        return topic

    def _alarm(
        self,
        construct_id: str,
        metric: cloudwatch.Metric,
        *,
        at_least: int,
        text: str,
        periods: int = 1,
    ) -> None:
        alarm = cloudwatch.Alarm(
            self,
            construct_id,
            metric=metric,
            threshold=at_least,
            evaluation_periods=periods,
            comparison_operator=cloudwatch.ComparisonOperator.GREATER_THAN_OR_EQUAL_TO_THRESHOLD,
            treat_missing_data=cloudwatch.TreatMissingData.NOT_BREACHING,
            alarm_description=text,
        )
        if self.topic is not None:
            alarm.add_alarm_action(actions.SnsAction(self.topic))
            alarm.add_ok_action(actions.SnsAction(self.topic))
