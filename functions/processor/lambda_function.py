"""Queue → handler → ledger: claims runs, calls handlers, settles."""

import logging
import os
from collections.abc import Mapping
from functools import partial
from typing import Any, Final

from aws_lambda_powertools import Logger
from compiled_manifest import MANIFEST

from processor.batch import Records, deadline_of, respond, worker_of
from processor.loader import load
from webhook_inbox.adapters.aws.clients import steady
from webhook_inbox.adapters.aws.dynamodb import DynamoTable
from webhook_inbox.adapters.aws.embedded_metrics import MetricLines
from webhook_inbox.adapters.aws.s3 import S3Blobs
from webhook_inbox.adapters.aws.secrets_manager import SecretsManagerStore
from webhook_inbox.adapters.aws.sns import SnsTopics
from webhook_inbox.adapters.aws.sqs import SqsQueue
from webhook_inbox.adapters.environment import ProcessorEnvironment
from webhook_inbox.adapters.system import SystemClock, SystemRandomness, ThreadExecutor
from webhook_inbox.destinations.client.factory import HttpClients
from webhook_inbox.domain.manifest import Manifest
from webhook_inbox.domain.ports import Ports
from webhook_inbox.processor.processor import Processor

# Lambda writes what libraries log at INFO, and httpx logs each URL: some contain a secret.
logging.getLogger("httpx").setLevel(logging.WARNING)

environment: Final = ProcessorEnvironment.read()
# The code version is in the lines of handlers too, which share the logger by its name. A line's
# place in the code is in its traceback, or says nothing.
logger: Final = Logger(code_version=environment.code_version, location=None)
# Only the name by which handlers' loggers share it.
logger.remove_keys(["service"])
clock: Final = SystemClock()
executor: Final = ThreadExecutor()
sqs: Final = steady("sqs")
store: Final = SecretsManagerStore(
    steady("secretsmanager"), environment.secret_document, keys=environment.generated_keys
)
# SINK_URL is set by the local runtime only; in AWS no destination is the sink.
manifest: Final = Manifest.from_data(MANIFEST).with_sink(os.environ.get("SINK_URL", ""))
ports: Final = Ports(
    table=DynamoTable(steady("dynamodb"), environment.table_name),
    blobs=S3Blobs(steady("s3"), environment.bucket_name),
    clock=clock,
    randomness=SystemRandomness(),
    queues={lane: SqsQueue(sqs, url) for lane, url in environment.reachable(manifest).items()},
    secret_store=store,
    executor=executor,
    clients=HttpClients(clock=clock),
    topics=SnsTopics(),
)
records: Final = Records(
    [
        Processor(manifest, ports, handlers=load, api_url=environment.api_url)
        for _ in range(manifest.lane(environment.lane).runs_per_invocation)
    ],
    executor=executor,
    manifest=manifest,
    clock=clock,
    logger=logger,
    metrics=partial(MetricLines, environment.metrics_namespace, dashboard=environment.dashboard),
    redact=ports.secrets.redact,
)


def lambda_handler(event: dict[str, Any], context: Any) -> Mapping[str, Any]:
    """Processes one batch and reports the records that the queue must keep."""
    # The other keys that Powertools would add are the same in every line of the log group.
    logger.append_keys(function_request_id=context.aws_request_id)
    worker = worker_of(context, environment)
    handle = partial(records.handle, worker=worker, deadline=deadline_of(context, clock.now()))
    return respond(event, handle)
