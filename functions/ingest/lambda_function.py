"""API Gateway → verify → ledger → queue. Its cold start loads only what a delivery uses."""

import gc

# Before the imports, since nothing that they create is garbage: a sixth of their time.
gc.disable()

from typing import Any, Final

from compiled_manifest import MANIFEST

from ingest.log import JsonLog
from ingest.routes import Routes
from webhook_inbox import providers
from webhook_inbox.adapters.aws.dynamodb import DynamoTable
from webhook_inbox.adapters.aws.embedded_metrics import MetricLines
from webhook_inbox.adapters.aws.lean_clients import JsonClient, S3Client, quick_caller
from webhook_inbox.adapters.aws.s3 import S3Blobs
from webhook_inbox.adapters.aws.secrets_manager import SecretsManagerStore
from webhook_inbox.adapters.aws.sqs import SqsQueue
from webhook_inbox.adapters.aws.time_budget import TimeBudget
from webhook_inbox.adapters.environment import IngestEnvironment
from webhook_inbox.adapters.https import LONGEST, HttpsFetcher
from webhook_inbox.adapters.system import SystemClock, SystemRandomness
from webhook_inbox.domain.manifest import Manifest
from webhook_inbox.domain.ports import Ports
from webhook_inbox.ingest.ingest import Ingest

environment: Final = IngestEnvironment.read()
logger: Final = JsonLog()
metrics: Final = MetricLines(environment.metrics_namespace, dashboard=environment.dashboard)
budget: Final = TimeBudget()
dynamodb, sqs, secretsmanager = map(JsonClient, ("dynamodb", "sqs", "secretsmanager"))
store: Final = SecretsManagerStore(
    secretsmanager,
    environment.secret_document,
    keys=environment.generated_keys,
    call=quick_caller("secretsmanager", budget),
)
manifest: Final = Manifest.from_data(MANIFEST)
ports: Final = Ports(
    table=DynamoTable(dynamodb, environment.table_name, call=quick_caller("dynamodb", budget)),
    blobs=S3Blobs(S3Client(), environment.bucket_name, call=quick_caller("s3", budget)),
    clock=SystemClock(),
    randomness=SystemRandomness(),
    queues={
        lane: SqsQueue(sqs, url, call=quick_caller("sqs", budget))
        for lane, url in environment.queue_urls(manifest).items()
    },
    secret_store=store,
    vault=store,
    fetcher=HttpsFetcher(call=budget.attempts_of(LONGEST)),
)
ingest: Final = Ingest(manifest, ports, providers=providers.load)
routes: Final = Routes(ingest, manifest, ports, logger=logger, metrics=metrics)
# A collection during a delivery does not look at what stays.
gc.freeze()
gc.enable()


def lambda_handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    """Answers one request."""
    budget.begin()
    logger.begin(context.aws_request_id)
    return routes.answer(event)
