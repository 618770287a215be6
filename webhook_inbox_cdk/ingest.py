"""The function behind the API: verifies, stores, enqueues and acknowledges deliveries."""

from typing import Final

from aws_cdk import aws_lambda as lambda_
from constructs import Construct
from webhook_inbox_cdk.bucket import HASHED
from webhook_inbox_cdk.function import InboxFunction, Shape
from webhook_inbox_cdk.resources import Resources

from webhook_inbox import providers
from webhook_inbox.adapters.environment import IngestEnvironment
from webhook_inbox.domain.secret_document import SOURCES

# The cheapest in MB whose slow cold starts fit into the 2.5 s response time; it uses 40 MB of it.
INGEST_MEMORY: Final = 512


class Ingest(InboxFunction):
    """Writes events and decisions, sends messages; reads no index, body or handler's secret.

    It may write its document only where a provider delivers its secret itself.

    Attributes:
        called: what the API calls: the function, or with SnapStart the alias of its last version.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        resources: Resources,
        *,
        memory: int,
        snapstart: bool,
    ) -> None:
        bundle = resources.workshop.make("ingest")
        keys = resources.secrets.token_key | resources.secrets.approval_key
        environment = IngestEnvironment(
            table_name=resources.ledger.table.table_name,
            bucket_name=resources.bodies.bucket.bucket_name,
            queue_url=resources.queue_url,
            queue_prefix=resources.queue_prefix,
            metrics_namespace=resources.metrics_namespace,
            dashboard=resources.dashboard,
            secret_document=resources.secrets.document(SOURCES),
            generated_keys=keys,
        )
        shape = Shape(
            name="ingest",
            bundle=bundle,
            timeout=10,
            memory=memory,
            environment=environment.variables(),
            extra={
                "snap_start": lambda_.SnapStartConf.ON_PUBLISHED_VERSIONS if snapstart else None
            },
        )
        super().__init__(scope, construct_id, shape)
        # Lambda takes snapshots of versions only. CloudFormation deletes the one before, whose
        # snapshot would be billed until then.
        self.called: lambda_.IFunction = self.add_alias("live") if snapstart else self
        self.allow(
            "dynamodb:GetItem",
            "dynamodb:PutItem",
            "dynamodb:Query",
            "dynamodb:UpdateItem",
            on=[resources.table],
        )
        self.allow("sqs:SendMessage", on=resources.work_queues)
        self.allow(
            "s3:PutObject",
            on=[resources.bodies.objects, resources.bodies.rejected_objects],
            pattern=HASHED,
        )
        document = resources.secrets.arn(SOURCES)
        self.allow("secretsmanager:GetSecretValue", on=[document, *keys.values()])
        sources = resources.manifest.sources.values()
        if any(providers.load(source).offer is not None for source in sources):
            self.allow("secretsmanager:PutSecretValue", on=[document])
