"""The function of one lane that runs handlers, and the mapping that feeds it.

Batches are split in one lane. Its function takes their items in as ingest takes events: it writes
their rows and bodies, and sends their runs to every lane.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from stacks.function import InboxFunction, Shape
from stacks.queue import VISIBILITY_TIMEOUT, Lane
from stacks.resources import Boxes
from webhook_inbox.adapters.environment import ProcessorEnvironment
from webhook_inbox.domain.errors import ConfigurationError
from webhook_inbox.domain.manifest import SPLIT

TIMEOUT = VISIBILITY_TIMEOUT // 6
DEFAULT_CONCURRENCY: Final = 5


@dataclass(frozen=True, slots=True)
class Placement:
    """Where processors run and how many at once.

    Attributes:
        max_concurrency: handlers at work at once in each lane, 2-1000. All functions of an
            account share its concurrent executions, 10 in a new account and 1000 in others; few
            by default, so that a backlog leaves some to ingest, which has to answer.
        reserved_concurrency: invocations that the account sets aside for each lane and that it
            cannot exceed; at least `max_concurrency`.
        vpc: a network to run in, for handlers that reach private systems.
        vpc_subnets: which of its subnets; private ones unless given.
        rights: what handlers may do beside their own work.
    """

    max_concurrency: int = DEFAULT_CONCURRENCY
    reserved_concurrency: int | None = None
    vpc: ec2.IVpc | None = None
    vpc_subnets: ec2.SubnetSelection | None = None
    rights: Sequence[iam.PolicyStatement] = ()

    def check(self) -> None:
        """Refuses what would burn receives.

        Raises:
            ConfigurationError: SQS would hand out messages that Lambda has no room for; each
                such throttled receive counts towards the dead letters.
        """
        if not 2 <= self.max_concurrency <= 1000:
            raise ConfigurationError(
                f"max_concurrency is {self.max_concurrency}; SQS takes 2 to 1000"
            )
        reserved = self.reserved_concurrency
        if reserved is not None and reserved < self.max_concurrency:
            raise ConfigurationError(
                f"reserved_concurrency {reserved} is below max_concurrency"
                f" {self.max_concurrency}: throttled receives would move messages to the dead"
                f" letters untried; reserve at least {self.max_concurrency} or lower"
                " max_concurrency"
            )


class Processor(InboxFunction):
    """Claims, runs and settles the runs of one lane.

    It can reach no other lane's queue, unless it splits batches.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        boxes: Boxes,
        lane: Lane,
        placement: Placement,
    ) -> None:
        placement.check()
        super().__init__(scope, construct_id, _shape(boxes, lane, placement))
        if placement.vpc is not None:
            self.allow_network_interfaces()
        self._grant(boxes, lane)
        for statement in placement.rights:
            self.add_to_role_policy(statement)
        # Not SqsEventSource: it would grant more than the mapping needs.
        self.add_event_source_mapping(
            "Mapping",
            event_source_arn=lane.work.queue_arn,
            batch_size=1,
            report_batch_item_failures=True,
            max_concurrency=placement.max_concurrency,
        )

    def _grant(self, boxes: Boxes, lane: Lane) -> None:
        self.allow("dynamodb:GetItem", "dynamodb:Query", "dynamodb:UpdateItem", on=[boxes.table])
        self.allow(
            "sqs:ChangeMessageVisibility",
            "sqs:DeleteMessage",
            "sqs:GetQueueAttributes",
            "sqs:ReceiveMessage",
            "sqs:SendMessage",
            on=[lane.work.queue_arn],
        )
        self.allow("s3:GetObject", on=[boxes.bodies.objects])
        if _ordered(boxes, lane):
            # Who waits in an ordering key's order, and what stops it, is written and cleared away.
            self.allow("dynamodb:DeleteItem", "dynamodb:PutItem", on=[boxes.table])
        if _splits(boxes, lane):
            self.allow("dynamodb:PutItem", on=[boxes.table])
            self.allow("sqs:SendMessage", on=boxes.work_queues)
            self.allow("s3:PutObject", on=[boxes.bodies.objects])
        # Without it S3 answers "access denied" for a body that is gone, which would be retried.
        self.allow("s3:ListBucket", on=[boxes.bodies.bucket.bucket_arn])
        secrets = [*boxes.secrets.arns(boxes.handler_secrets), boxes.secrets.completion_key]
        self.allow("secretsmanager:GetSecretValue", on=secrets)


def _ordered(boxes: Boxes, lane: Lane) -> bool:
    return any(h.order and h.lane == lane.name for h in boxes.manifest.handlers.values())


def _splits(boxes: Boxes, lane: Lane) -> bool:
    spec = boxes.manifest.handlers.get(SPLIT)
    return spec is not None and spec.lane == lane.name


def _shape(boxes: Boxes, lane: Lane, placement: Placement) -> Shape:
    bundle = boxes.workshop.make("processor")
    environment = ProcessorEnvironment(
        table_name=boxes.ledger.table.table_name,
        bucket_name=boxes.bodies.bucket.bucket_name,
        queue_urls=boxes.queue_urls if _splits(boxes, lane) else {lane.name: lane.work.queue_url},
        secret_prefix=boxes.secrets.prefix,
        lane=lane.name,
        max_receive_count=lane.max_receive_count,
        code_version=bundle.version,
    )
    return Shape(
        name="processor",
        bundle=bundle,
        timeout=TIMEOUT,
        memory=512,
        environment=environment.variables(),
        extra={
            # Waits are copies sent to this function's own queue, more than 16 in a row; Lambda
            # would take them for an endless loop and drop the event.
            "recursive_loop": lambda_.RecursiveLoop.ALLOW,
            "reserved_concurrent_executions": placement.reserved_concurrency,
            "vpc": placement.vpc,
            "vpc_subnets": placement.vpc_subnets,
        },
    )
