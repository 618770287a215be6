"""The scheduled function that finds what fell between two calls."""

from aws_cdk import Duration
from aws_cdk import aws_events as events
from aws_cdk import aws_events_targets as targets
from constructs import Construct

from stacks.boxes import Boxes
from stacks.function import InboxFunction, Shape
from stacks.replay import allow_sending_again
from webhook_inbox.adapters.environment import ReconcilerEnvironment


class Reconciler(InboxFunction):
    """Runs every minute; two may overlap, since all its writes are conditional."""

    def __init__(self, scope: Construct, construct_id: str, boxes: Boxes) -> None:
        bundle = boxes.workshop.make("reconciler")
        environment = ReconcilerEnvironment(
            table_name=boxes.ledger.table.table_name,
            queue_urls=boxes.queue_urls,
            dlq_urls=boxes.dlq_urls,
            code_version=bundle.version,
        )
        shape = Shape(
            name="reconciler",
            bundle=bundle,
            timeout=300,
            memory=512,
            environment=environment.variables(),
            # The next minute's run is the repetition.
            extra={"retry_attempts": 0},
        )
        super().__init__(scope, construct_id, shape)
        allow_sending_again(self, boxes)
        # A long backlog is not a death: it looks how much waits, and how old the oldest is.
        self.allow("sqs:GetQueueAttributes", on=boxes.work_queues)
        self.allow("cloudwatch:GetMetricStatistics", on=["*"])
        events.Rule(
            scope,
            "Schedule",
            description="webhook-inbox: reconciler",
            schedule=events.Schedule.rate(Duration.minutes(1)),
            targets=[targets.LambdaFunction(self, retry_attempts=0)],
        )
