"""The alarms, and the topic that delivers them."""

from collections.abc import Iterable, Sequence
from typing import Final

from aws_cdk import Aws, Duration, Stack
from aws_cdk import aws_apigatewayv2 as apigatewayv2
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_cloudwatch_actions as actions
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_sns as sns
from aws_cdk import aws_sns_subscriptions as subscriptions
from constructs import Construct
from webhook_inbox_cdk import names
from webhook_inbox_cdk.api import THROTTLED, THROTTLED_BY_ROUTE
from webhook_inbox_cdk.queue import FIFO_REACH, Lane
from webhook_inbox_cdk.waive import waive

from webhook_inbox.domain.manifest import HandlerSpec
from webhook_inbox.queue.outcomes import RunOutcome

MINUTE: Final = Duration.minutes(1)
FIVE_MINUTES: Final = Duration.minutes(5)
FIFTEEN_MINUTES: Final = Duration.minutes(15)
# The sender's name in the mails of an SNS topic.
DISPLAY_LIMIT: Final = 100

RAISE_CONCURRENCY: Final = "Raise max_concurrency, or move slow handlers to their own lane."
RAISE_OR_SPEED_UP: Final = (
    "Its handlers are serial: an ordering key runs one event at a time. Raise max_concurrency for"
    " many keys; for a busy key, make the handler faster."
)


class Alarms(Construct):
    """The alarms; an SNS topic notifies the addresses of `[alarms]` where there are any.

    Each description names the next step. Deliveries that ingest could not store have no alarm of
    their own: the provider retries, and `ApiErrors` fires where the errors last.
    """

    def __init__(self, scope: Construct, construct_id: str, *, addresses: Sequence[str]) -> None:
        super().__init__(scope, construct_id)
        self.topic = _topic(self, addresses) if addresses else None
        self._ctl = f"webhookctl --stack {Stack.of(self).stack_name}"

    def watch_lane(self, lane: Lane, processor: lambda_.IFunction) -> None:
        """Alarms on dead letters, a backlog, destination failures and processor crashes."""
        what = "Messages" if lane.fifo else "Runs"
        # NumberOfMessagesSent does not count messages that SQS moves to the DLQ itself.
        self._alarm(
            f"DeadLetters-{lane.name}",
            lane.dead.metric_approximate_number_of_messages_visible(
                period=MINUTE, statistic="Maximum"
            ),
            text=f"{what} of lane {lane.name} were moved to the DLQ. List them:"
            f" `{self._ctl} inbox list --status dead_letter`. After fixing the cause, replay them:"
            f" `{self._ctl} replay --yes`.",
        )
        self._alarm(
            f"Backlog-{lane.name}",
            lane.work.metric_approximate_age_of_oldest_message(period=MINUTE, statistic="Maximum"),
            at_least=900,
            periods=5,
            text=f"The oldest message of lane {lane.name} is over 15 minutes old. List the runs:"
            f" `{self._ctl} inbox list --status {'failed' if lane.fifo else 'pending'}`."
            f" {RAISE_OR_SPEED_UP if lane.fifo else RAISE_CONCURRENCY}",
        )
        if lane.fifo:
            self._watch_reach(lane)
        self._watch_processor(lane, processor)

    def _watch_processor(self, lane: Lane, processor: lambda_.IFunction) -> None:
        self._alarm(
            f"DestinationRefusals-{lane.name}",
            self._metric("Pages", service="processor", lane=lane.name),
            text=f"A destination of lane {lane.name} rejects its credentials (401, 403) or its host"
            " name does not resolve; retrying will not help. List the runs:"
            f" `{self._ctl} inbox list --status dead_letter`. Correct the secret or base_url, then"
            f" `{self._ctl} replay --yes`.",
        )
        # Breakers and limiters fail open: runs continue, but destinations are unprotected.
        self._alarm(
            f"FailedOpen-{lane.name}",
            self._metric("FailedOpen", service="processor", lane=lane.name),
            at_least=10,
            periods=3,
            text=f"Circuit breakers and rate limits of lane {lane.name} cannot be read; requests to"
            " destinations are not limited. Check the processor's logs for DynamoDB errors. Pause"
            " handlers whose destinations need protection:"
            f" `{self._ctl} handlers pause NAME --reason …`.",
        )
        # A handler that exceeds the timeout crashes its process once and its run is retried; a
        # function that cannot start fails for every message.
        self._alarm(
            f"ProcessorCrashes-{lane.name}",
            processor.metric_errors(period=FIFTEEN_MINUTES, statistic="Sum"),
            at_least=3,
            text=f"The processor of lane {lane.name} crashed three times: it cannot start, or"
            " handlers time out. Check its logs, and list the runs:"
            f" `{self._ctl} inbox list --status failed`.",
        )

    def _watch_reach(self, lane: Lane) -> None:
        """Alarms at half of the messages among which a FIFO queue finds available groups."""
        # Few are hidden: one for each ordering key that is at work.
        self._alarm(
            f"QueueReach-{lane.name}",
            lane.work.metric_approximate_number_of_messages_visible(
                period=MINUTE, statistic="Maximum"
            ),
            at_least=FIFO_REACH // 2,
            text=f"Lane {lane.name} has {FIFO_REACH // 2:,} messages. SQS finds other ordering keys"
            f" only among the first {FIFO_REACH:,}; beyond them the lane stops for all but the"
            " first keys. One ordering key is likely slower than its events arrive. Find it:"
            f" `{self._ctl} inbox list --status pending`. Make its handler faster, or pause the"
            f" handler, which moves its runs to the ledger: `{self._ctl} handlers pause NAME"
            " --reason …`.",
        )

    def watch_serial(self, handlers: Iterable[HandlerSpec]) -> None:
        """Alarms on dead runs of serial handlers, whose messages are not moved to a DLQ."""
        for spec in handlers:
            effect = "is blocked" if spec.blocks else "continued without it"
            self._alarm(
                f"DeadRuns-{spec.name}",
                self._metric(
                    "Messages",
                    service="processor",
                    lane=spec.lane,
                    handler=spec.name,
                    outcome=RunOutcome.DEAD,
                ),
                text=f"A run of {spec.name} is dead, and its ordering key {effect}. List the runs:"
                f" `{self._ctl} inbox list --status dead_letter`. After fixing the cause, replay"
                f" them: `{self._ctl} replay --handler {spec.name} --yes`.",
            )

    def watch_intake(self, api: apigatewayv2.IHttpApi, ingest: lambda_.IFunction) -> None:
        """Alarms on 429 and 5xx responses, and on crashes of ingest."""
        self._alarm(
            "Throttled",
            self._metric(THROTTLED, MINUTE),
            text="API Gateway answered 429: a source, or the completions, exceed their throttle,"
            f" and the deliveries are not stored. The metric {THROTTLED_BY_ROUTE} names the route."
            " Raise its throttle in inbox.toml and deploy. GitHub does not retry; find the missing"
            f" events: `{self._ctl} sources reconcile github --hook HOOK --since 1d`.",
        )
        self._alarm(
            "ApiErrors",
            api.metric_server_error(period=MINUTE, statistic="Sum"),
            text="The API returns 5xx responses, and providers retry. Check ingest's logs for the"
            f" outcome; for no-secret: `{self._ctl} secrets set NAME`.",
        )
        self._alarm(
            "IngestCrashes",
            ingest.metric_errors(period=MINUTE, statistic="Sum"),
            text="Ingest raised an error, and the provider retries. Check its logs, and whether the"
            f" event arrived: `{self._ctl} inbox list --since 1h`.",
        )

    def watch_sources(self, sources: Iterable[str]) -> None:
        """Alarms on each source's conflicts (G7), and on ingest's own faults."""
        for source in sources:
            self._alarm(
                f"Conflicts-{source}",
                self._deliveries(source, "conflict"),
                text=f"{source} sent a known event id with different content; the delivery was"
                " rejected and stored. Ingest's logs name the id:"
                f" `{self._ctl} inbox inspect EVENT_ID --source {source}`.",
            )
            self._alarm(
                f"IngestFaults-{source}",
                self._deliveries(source, "broken"),
                text=f"Ingest failed on a delivery of {source} because of a bug, and the provider"
                " retries. Its logs have the traceback. Deploy a fix, then check that the event"
                f" arrived: `{self._ctl} inbox list --source {source} --since 1h`.",
            )

    def watch_identical(self, sources: Iterable[str]) -> None:
        """Alarms on events of these sources whose body was received before under another id."""
        for source in sources:
            self._alarm(
                f"Held-{source}",
                self._deliveries(source, "held"),
                text=f"{source} sent an event with the body of an earlier one: a second event, or a"
                " captured delivery. It is stored and its runs are held. List them:"
                f" `{self._ctl} hold list --source {source} --subject identical-body`. Compare with"
                " the provider's log, then"
                f" `{self._ctl} hold approve EVENT_ID --source {source} --reason TEXT`, or deny.",
            )

    def watch_enrolments(self, sources: Iterable[str]) -> None:
        """Alarms on two secrets that were offered in one enrolment, one of them by a stranger."""
        for source in sources:
            self._alarm(
                f"ContestedEnrolments-{source}",
                self._deliveries(source, "contested"),
                text=f"Two different secrets were offered to {source} in one enrolment, so at least"
                " one was not its provider's. None is accepted, and deliveries are answered 503"
                " and kept. Delete the webhook at the provider, run"
                f" `{self._ctl} secrets enrol {source}`, and create one webhook.",
            )

    def watch_reconciler(self, reconciler: lambda_.IFunction) -> None:
        """Alarms on a reconciler that stopped or fails, and on the runs that it gives up."""
        self._alarm(
            "ReconcilerStopped",
            self._reconciler("Passes"),
            at_most=0,
            periods=2,
            missing=cloudwatch.TreatMissingData.BREACHING,
            text="The reconciler has not completed a pass for 10 minutes; parked and lost runs are"
            " not resumed. Check its schedule and its logs, and list the waiting runs:"
            f" `{self._ctl} inbox list --status deferred`. May fire once after the first"
            " deployment.",
        )
        self._alarm(
            "ReconcilerCrashes",
            reconciler.metric_errors(period=FIVE_MINUTES, statistic="Sum"),
            text="A pass of the reconciler raised an error; the next pass starts within a minute."
            " If the error persists, check its logs, and list the waiting runs:"
            f" `{self._ctl} inbox list --status deferred`.",
        )
        self._alarm(
            "ReconcilerFailed",
            self._reconciler("Failed"),
            periods=3,
            text="The reconciler has failed on some runs for 15 minutes. Its logs name the runs and"
            f" the errors: `{self._ctl} inbox inspect EVENT_ID`.",
        )
        self._alarm(
            "ReconcilerIncomplete",
            self._reconciler("Incomplete"),
            periods=3,
            text="The reconciler has not finished a pass in time for 15 minutes: more runs are due"
            f" than it can process. List them: `{self._ctl} inbox list --status failed`.",
        )
        self._watch_given_up()

    def _watch_given_up(self) -> None:
        self._alarm(
            "RunsLost",
            self._reconciler("Lost"),
            text="The reconciler gave up on runs after six sends. List the runs:"
            f" `{self._ctl} inbox list --status dead_letter`. Then `{self._ctl} replay --yes`.",
        )
        self._alarm(
            "RunsExpired",
            self._reconciler("Expired"),
            text="The reconciler gave up on runs that waited until their events expired. List them:"
            f" `{self._ctl} inbox list --status dead_letter`. Ask the provider to send them again.",
        )
        self._alarm(
            "RunsNearExpiry",
            self._reconciler("LastCall"),
            text="Runs still wait whose events expire within 7 days; they are then given up. List"
            f" them: `{self._ctl} inbox list --status deferred`. Send one now:"
            f" `{self._ctl} replay EVENT_ID --yes`.",
        )

    def watch_replay(self, replay: lambda_.IFunction) -> None:
        """Alarms on a failed replay, which an invocation from the console may not show."""
        self._alarm(
            "ReplayErrors",
            replay.metric_errors(period=FIVE_MINUTES, statistic="Sum"),
            text="A replay was rejected or raised an error; check its logs. Runs that it sent stay"
            f" sent. For the rest: `{self._ctl} replay`, then add --yes.",
        )
        self._alarm(
            "ReplayInterrupted",
            self._metric("ReplayInterrupted", service="replay"),
            text="The ledger or a queue failed during a replay; its result and its log have the"
            f" error and a cursor. For the rest: `{self._ctl} replay --cursor CURSOR`, with the"
            " same options.",
        )

    def _alarm(
        self,
        construct_id: str,
        metric: cloudwatch.Metric,
        *,
        text: str,
        at_least: int = 1,
        at_most: int | None = None,
        periods: int = 1,
        missing: cloudwatch.TreatMissingData = cloudwatch.TreatMissingData.NOT_BREACHING,
    ) -> None:
        compare = cloudwatch.ComparisonOperator
        alarm = cloudwatch.Alarm(
            self,
            construct_id,
            metric=metric,
            threshold=at_least if at_most is None else at_most,
            evaluation_periods=periods,
            comparison_operator=compare.GREATER_THAN_OR_EQUAL_TO_THRESHOLD
            if at_most is None
            else compare.LESS_THAN_OR_EQUAL_TO_THRESHOLD,
            treat_missing_data=missing,
            alarm_description=text,
        )
        if self.topic is not None:
            alarm.add_alarm_action(actions.SnsAction(self.topic))
            alarm.add_ok_action(actions.SnsAction(self.topic))

    # CloudWatch identifies a metric by its name and all its dimensions; these match the functions'
    # telemetry.py.
    def _deliveries(self, source: str, outcome: str) -> cloudwatch.Metric:
        return self._metric("Deliveries", service="ingest", source=source, outcome=outcome)

    def _reconciler(self, action: str) -> cloudwatch.Metric:
        return self._metric(f"Reconciler{action}", service="reconciler")

    def _metric(
        self, name: str, period: Duration = FIVE_MINUTES, **dimensions: str
    ) -> cloudwatch.Metric:
        return cloudwatch.Metric(
            namespace=names.metrics_namespace(self),
            metric_name=name,
            dimensions_map=dimensions,
            period=period,
            statistic="Sum",
        )


def _topic(scope: Construct, addresses: Sequence[str]) -> sns.Topic:
    """Returns a topic that notifies these addresses, `mailto:` or `https:`."""
    # Unencrypted: CloudWatch cannot publish with the account's default KMS key for SNS, and the
    # alarms' texts hold no secrets.
    sender = Stack.of(scope).stack_name[:DISPLAY_LIMIT]
    topic = sns.Topic(scope, "Topic", display_name=sender, enforce_ssl=True)
    waive(topic, {"CKV_AWS_26": "CloudWatch cannot publish with the account's default key."})
    # Any resource policy, even one with only a Deny, replaces the default policy that lets the
    # account's alarms publish.
    topic.add_to_resource_policy(
        iam.PolicyStatement(
            sid="AllowAlarms",
            principals=[iam.ServicePrincipal("cloudwatch.amazonaws.com")],
            actions=["sns:Publish"],
            resources=[topic.topic_arn],
            conditions={"StringEquals": {"aws:SourceAccount": Aws.ACCOUNT_ID}},
        )
    )
    for address in addresses:
        kind, _, rest = address.partition(":")
        topic.add_subscription(
            subscriptions.EmailSubscription(rest)
            if kind == "mailto"
            else subscriptions.UrlSubscription(address)
        )
    return topic
