"""The function behind the API: verify, record, enqueue, acknowledge."""

from constructs import Construct

from stacks.function import InboxFunction, Shape
from stacks.resources import Boxes
from webhook_inbox.adapters.environment import IngestEnvironment


class Ingest(InboxFunction):
    """Writes events and sends messages; reads no index, no body and no handler's secret.

    It sets a secret only of sources whose provider delivers it.
    """

    def __init__(self, scope: Construct, construct_id: str, boxes: Boxes) -> None:
        bundle = boxes.workshop.make("ingest")
        environment = IngestEnvironment(
            table_name=boxes.ledger.table.table_name,
            bucket_name=boxes.bodies.bucket.bucket_name,
            queue_urls=boxes.queue_urls,
            secret_prefix=boxes.secrets.prefix,
        )
        shape = Shape(
            name="ingest",
            bundle=bundle,
            timeout=10,
            # More memory is more CPU: a cold start has to fit into the 2.5 s of an answer.
            memory=1024,
            environment=environment.variables(),
        )
        super().__init__(scope, construct_id, shape)
        self.allow(
            "dynamodb:GetItem",
            "dynamodb:PutItem",
            "dynamodb:Query",
            "dynamodb:UpdateItem",
            on=[boxes.table],
        )
        self.allow("sqs:SendMessage", on=boxes.work_queues)
        self.allow("s3:PutObject", on=[boxes.bodies.objects, boxes.bodies.rejected_objects])
        secrets = [*boxes.secrets.arns(boxes.source_secrets), *boxes.secrets.token_key]
        self.allow("secretsmanager:GetSecretValue", on=secrets)
        delivered = boxes.secrets.arns(boxes.delivered_secrets)
        if delivered:
            self.allow("secretsmanager:PutSecretValue", on=delivered)
