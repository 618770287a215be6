"""The function that runs the handlers of one lane, and its event source mapping.

One lane also splits batches: its function stores each item as an event, as ingest does, and sends
the item's runs to every lane.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from constructs import Construct
from webhook_inbox_cdk import regions
from webhook_inbox_cdk.bucket import HASHED
from webhook_inbox_cdk.bundle import Bundle
from webhook_inbox_cdk.function import InboxFunction, Shape
from webhook_inbox_cdk.queue import Lane
from webhook_inbox_cdk.resources import Resources

from webhook_inbox.adapters.environment import ProcessorEnvironment
from webhook_inbox.domain.errors import ConfigurationError
from webhook_inbox.domain.manifest import ApproversSpec
from webhook_inbox.domain.secret_document import HANDLERS
from webhook_inbox.handlers.approvals.announcer import SNS
from webhook_inbox.handlers.ordering.declaration import LATEST
from webhook_inbox.ledger.deadlines import FUNCTION_TIMEOUT

# In MB: 62 without the handlers' libraries, and up to 27 for each of 10 large bodies at a time.
PROCESSOR_MEMORY: Final = 512


@dataclass(frozen=True, slots=True)
class Placement:
    """The reservation, the memory, the network and the extra rights of the processors.

    Attributes:
        reserved_concurrency: concurrent executions reserved for each lane, also its upper limit;
            at least the `workers` of each. Without it all functions of an account share its
            concurrent executions (10 in a new account, 1000 in others), and `webhookctl preflight`
            compares.
        memory: the memory of each lane's function, in MB; Lambda gives CPU in proportion, one at
            1,769 MB.
        vpc: the network to run in, for handlers that reach private systems.
        vpc_subnets: the subnets of `vpc`; private ones by default.
        rights: the handlers' own IAM statements.
    """

    reserved_concurrency: int | None = None
    memory: int = PROCESSOR_MEMORY
    vpc: ec2.IVpc | None = None
    vpc_subnets: ec2.SubnetSelection | None = None
    rights: Sequence[iam.PolicyStatement] = ()

    def check(self, lane: str, workers: int) -> None:
        """Raises ConfigurationError where SQS would deliver more messages than Lambda can run.

        Each throttled receive counts towards the queue's maxReceiveCount.
        """
        reserved = self.reserved_concurrency
        if reserved is not None and reserved < workers:
            raise ConfigurationError(
                f"reserved_concurrency {reserved} is below the {workers} workers of the lane"
                f" {lane!r}: throttled receives would move messages to the DLQ before their first"
                f" attempt; reserve at least {workers} or lower `workers` of [lanes.{lane}] in"
                " inbox.toml"
            )


def allow(*actions: str, on: str) -> iam.PolicyStatement:
    """Returns the permission for `actions` on the resource with this ARN."""
    return iam.PolicyStatement(actions=list(actions), resources=[on])


class Processor(InboxFunction):
    """Leases, runs and settles the runs of one lane.

    It has no access to other lanes' queues, unless it splits batches.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        resources: Resources,
        lane: Lane,
        placement: Placement,
        bundle: Bundle,
    ) -> None:
        spec = resources.manifest.lane(lane.name)
        placement.check(lane.name, spec.workers)
        super().__init__(scope, construct_id, _shape(resources, lane, placement, bundle))
        # A waiting run sends copies to this function's own queue, more than 16 in a row. Lambda
        # would detect a recursive loop and drop the event.
        regions.allow_loops(self)
        if placement.vpc is not None:
            self.allow_network_interfaces()
        self._grant(resources, lane)
        for statement in placement.rights:
            self.add_to_role_policy(statement)
        # SqsEventSource would grant more than the mapping needs.
        self.add_event_source_mapping(
            "Mapping",
            event_source_arn=lane.work.queue_arn,
            # Every message of a batch begins at once, so none waits behind another one's run.
            batch_size=spec.runs_per_invocation,
            report_batch_item_failures=True,
            max_concurrency=spec.workers,
        )

    def link_to(self, url: str) -> None:
        """Has the links of approvers begin with the API's base URL, which is known later."""
        self.add_environment("API_URL", url)

    def _grant(self, resources: Resources, lane: Lane) -> None:
        self.allow(
            "dynamodb:GetItem",
            "dynamodb:PutItem",  # a wait for a completion, and what waits for its turn
            "dynamodb:Query",
            "dynamodb:UpdateItem",
            on=[resources.table],
        )
        self.allow(
            "sqs:ChangeMessageVisibility",
            "sqs:DeleteMessage",
            "sqs:GetQueueAttributes",
            "sqs:ReceiveMessage",
            on=[lane.work.queue_arn],
        )
        splits = resources.manifest.splits(lane.name)
        self.allow("sqs:SendMessage", on=resources.work_queues if splits else [lane.work.queue_arn])
        self.allow("s3:GetObject", on=[resources.bodies.objects], pattern=HASHED)
        handlers = resources.manifest.handlers.values()
        if any(h.order and h.order.kind != LATEST and h.lane == lane.name for h in handlers):
            # The waiting runs of an ordering key; with `latest` none waits.
            self.allow("dynamodb:DeleteItem", on=[resources.table])
        if splits:
            self.allow("s3:PutObject", on=[resources.bodies.objects], pattern=HASHED)
        # Without it S3 answers "access denied" for a missing body, which would be retried.
        self.allow("s3:ListBucket", on=[resources.bodies.bucket.bucket_arn])
        secrets = [resources.secrets.arn(HANDLERS), *_keys(resources).values()]
        self.allow("secretsmanager:GetSecretValue", on=secrets)
        topics = _topics(resources.manifest.approvers.values())
        if topics:
            self.allow("sns:Publish", on=topics)


def _topics(groups: Iterable[ApproversSpec]) -> list[str]:
    """Returns the ARNs of the topics that announce requests to approvers."""
    routes = (route.partition(":") for group in groups for route in group.people.values())
    return sorted({arn for name, _, arn in routes if name == SNS})


def _keys(resources: Resources) -> dict[str, str]:
    return resources.secrets.completion_key | resources.secrets.approval_key


def _shape(resources: Resources, lane: Lane, placement: Placement, bundle: Bundle) -> Shape:
    environment = ProcessorEnvironment(
        table_name=resources.ledger.table.table_name,
        bucket_name=resources.bodies.bucket.bucket_name,
        queue_url=resources.queue_url,
        queue_prefix=resources.queue_prefix,
        metrics_namespace=resources.metrics_namespace,
        dashboard=resources.dashboard,
        secret_document=resources.secrets.document(HANDLERS),
        generated_keys=_keys(resources),
        lane=lane.name,
        max_receive_count=lane.max_receive_count,
        code_version=bundle.version,
    )
    return Shape(
        name="processor",
        bundle=bundle,
        timeout=int(FUNCTION_TIMEOUT.total_seconds()),
        memory=placement.memory,
        environment=environment.variables(),
        extra={
            "reserved_concurrent_executions": placement.reserved_concurrency,
            "vpc": placement.vpc,
            "vpc_subnets": placement.vpc_subnets,
        },
    )
