"""The function behind the API: verifies, stores, enqueues and acknowledges deliveries."""

from constructs import Construct
from webhook_inbox_cdk.bucket import HASHED
from webhook_inbox_cdk.function import InboxFunction, Shape
from webhook_inbox_cdk.resources import Resources

from webhook_inbox import providers
from webhook_inbox.adapters.environment import IngestEnvironment


class Ingest(InboxFunction):
    """Writes events and sends messages; reads no index, no body and no handler's secret.

    It may set only the secrets that providers deliver themselves.
    """

    def __init__(self, scope: Construct, construct_id: str, resources: Resources) -> None:
        bundle = resources.workshop.make("ingest")
        environment = IngestEnvironment(
            table_name=resources.ledger.table.table_name,
            bucket_name=resources.bodies.bucket.bucket_name,
            queue_url=resources.queue_url,
            queue_prefix=resources.queue_prefix,
            secret_prefix=resources.secrets.prefix,
        )
        shape = Shape(
            name="ingest",
            bundle=bundle,
            timeout=10,
            # More memory gives more CPU: a cold start must fit into the 2.5 s response time.
            memory=1024,
            environment=environment.variables(),
        )
        super().__init__(scope, construct_id, shape)
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
        secrets = [
            *resources.secrets.arns(resources.source_secrets),
            *resources.secrets.token_key,
            resources.secrets.smoke,
        ]
        self.allow("secretsmanager:GetSecretValue", on=secrets)
        sources = resources.manifest.sources.values()
        delivered = {s.secret for s in sources if providers.load(s).offer is not None}
        self.allow("secretsmanager:PutSecretValue", on=resources.secrets.arns(delivered))
