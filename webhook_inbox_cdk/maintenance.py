"""The two maintenance functions, which find runs, change them and send them again."""

from collections.abc import Mapping
from typing import Final

from aws_cdk import Duration
from aws_cdk import aws_events as events
from aws_cdk import aws_events_targets as targets
from constructs import Construct
from webhook_inbox_cdk.bucket import HASHED
from webhook_inbox_cdk.function import EVERYTHING, InboxFunction, Shape
from webhook_inbox_cdk.resources import Resources

from webhook_inbox.adapters.environment import MaintenanceEnvironment
from webhook_inbox.ledger import payloads
from webhook_inbox.ledger.schema import BY_DUE, BY_RECEIVED

# The memory in MB with which Lambda gives a function one CPU. Resuming a run costs the reconciler
# about 1 ms of it; with 512 MB a pass could not drain a destination of 100 calls a second.
ONE_CPU: Final = 1769


class MaintenanceFunction(InboxFunction):
    """Queries the due index, sends to every work queue, deletes messages from the DLQs."""

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        name: str,
        resources: Resources,
        memory: int = 512,
        variables: Mapping[str, str] | None = None,
    ) -> None:
        bundle = resources.workshop.make(name)
        environment = MaintenanceEnvironment(
            table_name=resources.ledger.table.table_name,
            bucket_name=resources.bodies.bucket.bucket_name,
            queue_url=resources.queue_url,
            queue_prefix=resources.queue_prefix,
            metrics_namespace=resources.metrics_namespace,
            dashboard=resources.dashboard,
            dlq_names=resources.dlq_names,
        )
        shape = Shape(
            name=name,
            bundle=bundle,
            timeout=300,
            memory=memory,
            environment={**environment.variables(), **(variables or {})},
            # An asynchronous retry by Lambda would be a second replay; the reconciler runs every
            # minute anyway.
            extra={"retry_attempts": 0},
        )
        super().__init__(scope, construct_id, shape)
        self.allow(
            "dynamodb:BatchGetItem",
            "dynamodb:GetItem",
            "dynamodb:Query",
            "dynamodb:UpdateItem",
            on=[resources.table],
        )
        self.allow("dynamodb:Query", on=[resources.ledger.index(BY_DUE)])
        self.allow("sqs:SendMessage", on=resources.work_queues)
        self.allow(
            "sqs:ChangeMessageVisibility",
            "sqs:DeleteMessage",
            "sqs:ReceiveMessage",
            on=resources.dead_letter_queues,
        )


class Replay(MaintenanceFunction):
    """Resets the runs that an operator selects, and sends them again."""

    def __init__(self, scope: Construct, construct_id: str, resources: Resources) -> None:
        # With 1,769 MB a function has one whole CPU. 500 runs per second need most of one: a run
        # costs 1.9 ms, measured by scripts/replay_benchmark.py.
        bucket = resources.bodies.bucket
        super().__init__(
            scope,
            construct_id,
            name="replay",
            resources=resources,
            memory=1769,
            variables={"BUCKET_NAME": bucket.bucket_name},
        )
        # Writes an audit row per page, and the lists of selections.
        self.allow("dynamodb:PutItem", on=[resources.table])
        # Finds finished runs by the time of receipt, and reads bodies for `where`.
        self.allow("dynamodb:Query", on=[resources.ledger.index(BY_RECEIVED)])
        self.allow("s3:GetObject", on=[resources.bodies.objects], pattern=HASHED)
        # Without it S3 answers "access denied" for a missing body.
        self.allow("s3:ListBucket", on=[bucket.bucket_arn])


class Reconciler(MaintenanceFunction):
    """Runs every minute; passes may overlap, since all its writes are conditional."""

    def __init__(self, scope: Construct, construct_id: str, resources: Resources) -> None:
        super().__init__(
            scope, construct_id, name="reconciler", resources=resources, memory=ONE_CPU
        )
        if resources.manifest.serial_lanes:
            # Takes the runs that it gives up out of the line of their ordering key.
            self.allow("dynamodb:DeleteItem", on=[resources.table])
        if any(source.retention for source in resources.manifest.sources.values()):
            self.allow("s3:DeleteObject", on=[resources.bodies.objects], pattern=HASHED)
            # Finds the objects of an event that no row names.
            bodies = {"StringLike": {"s3:prefix": f"{payloads.PREFIX}*"}}
            self.allow("s3:ListBucket", on=[resources.bodies.bucket.bucket_arn], when=bodies)
        # Lists events, to find those whose runs were not sent.
        self.allow("dynamodb:Query", on=[resources.ledger.index(BY_RECEIVED)])
        # Tells a backlog from a lost message by the queue's length and its oldest message.
        self.allow("sqs:GetQueueAttributes", on=resources.work_queues)
        self.allow(
            "cloudwatch:GetMetricStatistics",
            on=[EVERYTHING],
            pattern="CloudWatch metrics have no ARN.",
        )
        events.Rule(
            scope,
            "Schedule",
            description="webhook-inbox: reconciler",
            schedule=events.Schedule.rate(Duration.minutes(1)),
            targets=[targets.LambdaFunction(self, retry_attempts=0)],
        )
