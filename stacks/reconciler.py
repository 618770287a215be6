"""The scheduled function that finds what fell between two calls."""

from aws_cdk import Duration
from aws_cdk import aws_events as events
from aws_cdk import aws_events_targets as targets
from constructs import Construct

from stacks.maintenance_function import Resender
from stacks.resources import Boxes


class Reconciler(Resender):
    """Runs every minute; two may overlap, since all its writes are conditional."""

    def __init__(self, scope: Construct, construct_id: str, boxes: Boxes) -> None:
        super().__init__(scope, construct_id, name="reconciler", boxes=boxes)
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
