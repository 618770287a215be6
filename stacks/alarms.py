"""What wakes somebody, and what that person does next."""

from collections.abc import Iterable, Sequence
from typing import Final

from aws_cdk import Duration, Stack
from aws_cdk import aws_apigatewayv2 as apigatewayv2
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_cloudwatch_actions as actions
from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from stacks.function import NAMESPACE
from stacks.queue import Lane
from stacks.topic import alarm_topic
from webhook_inbox.domain.manifest import HandlerSpec
from webhook_inbox.queue.outcomes import RunOutcome

MINUTE: Final = Duration.minutes(1)
FIVE_MINUTES: Final = Duration.minutes(5)
FIFTEEN_MINUTES: Final = Duration.minutes(15)

WAITS_FOR_ROOM: Final = "Raise max_concurrency, or give slow handlers a lane of their own."
WAITS_IN_ORDER: Final = (
    "Its handlers are serial: an ordering key's events wait for one that is retried, held, or dead and"
    " blocks them. Finish that one."
)


class Alarms(Construct):
    """The alarms, and the topic that tells people where `[alarms]` names any.

    Each one's text says what to do. Deliveries that ingest could not store have none of their
    own: their providers retry, and where that does not help, `IntakeErrors` tells.
    """

    def __init__(self, scope: Construct, construct_id: str, *, addresses: Sequence[str]) -> None:
        super().__init__(scope, construct_id)
        self.topic = alarm_topic(self, addresses) if addresses else None
        self._ctl = f"webhookctl --stack {Stack.of(self).stack_name}"

    def watch_lane(self, lane: Lane, processor: lambda_.IFunction) -> None:
        """Alarms on dead letters, on work that waits, and on a function that cannot work."""
        what = "Messages" if lane.fifo else "Runs"
        # Not NumberOfMessagesSent: it stays 0 for what SQS itself moves.
        self._alarm(
            f"DeadLetters-{lane.name}",
            lane.dead.metric_approximate_number_of_messages_visible(
                period=MINUTE, statistic="Maximum"
            ),
            text=f"{what} of lane {lane.name} were given up. Look:"
            f" `{self._ctl} inbox list --status dead_letter`. Once their cause is gone:"
            f" `{self._ctl} replay --yes`.",
        )
        self._alarm(
            f"Backlog-{lane.name}",
            lane.work.metric_approximate_age_of_oldest_message(period=MINUTE, statistic="Maximum"),
            at_least=900,
            periods=5,
            text=f"Work of lane {lane.name} waits for over 15 minutes. Look:"
            f" `{self._ctl} inbox list --status {'failed' if lane.fifo else 'pending'}`."
            f" {WAITS_IN_ORDER if lane.fifo else WAITS_FOR_ROOM}",
        )
        self._alarm(
            f"Pages-{lane.name}",
            _metric("Pages", service="processor", lane=lane.name),
            text=f"A destination refuses what runs of lane {lane.name} send for want of rights"
            " (401, 403), or its name cannot be resolved: no repetition helps. Look:"
            f" `{self._ctl} inbox list --status dead_letter`. Set its secret or mend its base_url,"
            f" then `{self._ctl} replay --yes`.",
        )
        # What spares destinations fails open, so nothing stands still: but nothing is spared.
        self._alarm(
            f"FailedOpen-{lane.name}",
            _metric("FailedOpen", service="processor", lane=lane.name),
            at_least=10,
            periods=3,
            text=f"Breakers and rate limits of lane {lane.name} cannot be read: destinations are"
            " called as if there were none. See the processor's logs for the table's errors, and"
            " pause what must not be called:"
            f" `{self._ctl} handlers pause NAME --reason …`.",
        )
        # Not the first one: a handler that does not end in time takes its process along, and
        # its run is tried again. A function that cannot even start fails for every message.
        self._alarm(
            f"ProcessorCrashes-{lane.name}",
            processor.metric_errors(period=FIFTEEN_MINUTES, statistic="Sum"),
            at_least=3,
            text=f"Lane {lane.name}'s processor crashed three times: it cannot start, or handlers"
            f" do not end in time. See its logs, and `{self._ctl} inbox list --status failed`.",
        )

    def watch_serial(self, handlers: Iterable[HandlerSpec]) -> None:
        """Alarms on the deaths of serial runs: their messages are in no dead-letter queue."""
        for spec in handlers:
            after = "waits for it" if spec.blocks else "went on without it"
            self._alarm(
                f"Deaths-{spec.name}",
                _metric(
                    "Messages",
                    service="processor",
                    lane=spec.lane,
                    handler=spec.name,
                    outcome=RunOutcome.DEAD,
                ),
                text=f"A run of {spec.name} was given up, and its ordering key {after}. Look:"
                f" `{self._ctl} inbox list --status dead_letter`. Once the cause is gone:"
                f" `{self._ctl} replay --handler {spec.name} --yes`.",
            )

    def watch_intake(self, api: apigatewayv2.IHttpApi, ingest: lambda_.IFunction) -> None:
        """Alarms on answers that make providers retry, and on crashes of ingest."""
        self._alarm(
            "IntakeErrors",
            api.metric_server_error(period=MINUTE, statistic="Sum"),
            periods=3,
            text="Providers get 5xx answers and retry. See ingest's logs for the outcome: for"
            f" no-secret, `{self._ctl} secrets set NAME`.",
        )
        self._alarm(
            "IngestCrashes",
            ingest.metric_errors(period=MINUTE, statistic="Sum"),
            text="Ingest raised an error; its provider retries. See its logs, and whether the"
            f" event came: `{self._ctl} inbox list --since 1h`.",
        )

    def watch_sources(self, sources: Iterable[str]) -> None:
        """Alarms on each source's conflicts (G7), and on our own faults with its deliveries."""
        for source in sources:
            self._alarm(
                f"Conflicts-{source}",
                _deliveries(source, "conflict"),
                text=f"{source} sent a known event id with other content; it was refused and kept."
                " Ingest's logs name the id:"
                f" `{self._ctl} inbox inspect EVENT_ID --source {source}`.",
            )
            self._alarm(
                f"Faults-{source}",
                _deliveries(source, "broken"),
                text=f"Ingest's own code failed on a delivery of {source}; the provider retries."
                " Its logs hold the traceback. Repair and deploy, then see that it came:"
                f" `{self._ctl} inbox list --source {source} --since 1h`.",
            )

    def watch_reconciler(self, reconciler: lambda_.IFunction) -> None:
        """Alarms on a reconciler that stands still, on its own errors, and on what it found."""
        self._alarm(
            "ReconcilerStopped",
            _reconciler("Passes"),
            at_most=0,
            periods=2,
            missing=cloudwatch.TreatMissingData.BREACHING,
            text="No pass of the reconciler for 10 minutes: parked and lost runs are not woken."
            " See its schedule and its logs; what waits:"
            f" `{self._ctl} inbox list --status deferred`. A first deployment may ring it once.",
        )
        self._alarm(
            "ReconcilerCrashes",
            reconciler.metric_errors(period=FIVE_MINUTES, statistic="Sum"),
            text="A pass of the reconciler raised an error; the next one is a minute later. If it"
            f" lasts, see its logs; what waits: `{self._ctl} inbox list --status deferred`.",
        )
        self._alarm(
            "ReconcilerFailed",
            _reconciler("Failed"),
            periods=3,
            text="The reconciler has failed on some runs for 15 minutes; its logs say on which"
            f" and why: `{self._ctl} inbox inspect EVENT_ID`.",
        )
        self._alarm(
            "ReconcilerIncomplete",
            _reconciler("Incomplete"),
            periods=3,
            text="For 15 minutes the reconciler has not seen all it had to in its time: there is"
            f" more than it can look at. What waits: `{self._ctl} inbox list --status failed`.",
        )
        self._watch_runs_found()

    def watch_replay(self, replay: lambda_.IFunction) -> None:
        """Alarms on a replay that broke off: from the console, nobody may have seen it."""
        self._alarm(
            "ReplayErrors",
            replay.metric_errors(period=FIVE_MINUTES, statistic="Sum"),
            text="A replay was refused or broke off; see its logs. What it sent is sent; for the"
            f" rest: `{self._ctl} replay`, and again with --yes.",
        )

    def _watch_runs_found(self) -> None:
        dead = f"`{self._ctl} inbox list --status dead_letter`, then `{self._ctl} replay --yes`."
        self._alarm(
            "RunsLost",
            _reconciler("Lost"),
            text=f"The reconciler gave runs up that were sent six times in vain: {dead}",
        )
        self._alarm(
            "RunsExpired",
            _reconciler("Expired"),
            text=f"The reconciler gave runs up that waited past their event's end: {dead}",
        )
        self._alarm(
            "RunsAtLastCall",
            _reconciler("LastCall"),
            text="Runs still wait and their events end within 7 days; then they are given up."
            f" `{self._ctl} inbox list --status deferred`, then"
            f" `{self._ctl} replay --event-id EVENT_ID --yes`.",
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


# CloudWatch knows a metric by its name and all its dimensions, so these are exactly those that
# the functions' telemetry.py write.
def _deliveries(source: str, outcome: str) -> cloudwatch.Metric:
    return _metric("Deliveries", service="ingest", source=source, outcome=outcome)


def _reconciler(action: str) -> cloudwatch.Metric:
    return _metric(f"Reconciler{action}", service="reconciler")


def _metric(name: str, **dimensions: str) -> cloudwatch.Metric:
    return cloudwatch.Metric(
        namespace=NAMESPACE,
        metric_name=name,
        dimensions_map=dimensions,
        period=FIVE_MINUTES,
        statistic="Sum",
    )
