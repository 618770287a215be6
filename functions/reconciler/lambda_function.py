"""Finds lost and overdue runs; a schedule invokes it every minute."""

from datetime import timedelta
from typing import Any, Final

from aws_lambda_powertools import Logger
from compiled_manifest import MANIFEST

from reconciler.telemetry import counted, measure, measure_destinations, observe
from webhook_inbox.adapters.aws.clients import CONNECTIONS, steady
from webhook_inbox.adapters.aws.dynamodb import DynamoTable
from webhook_inbox.adapters.aws.embedded_metrics import MetricLines
from webhook_inbox.adapters.aws.s3 import S3Blobs
from webhook_inbox.adapters.aws.sqs import OldestMessage, SqsQueue
from webhook_inbox.adapters.environment import MaintenanceEnvironment
from webhook_inbox.adapters.system import SystemClock, SystemRandomness, ThreadParallel
from webhook_inbox.domain.manifest import Manifest
from webhook_inbox.domain.ports import Ports
from webhook_inbox.reconciler.reconciler import Reconciler

environment: Final = MaintenanceEnvironment.read()
logger: Final = Logger()
metrics: Final = MetricLines(environment.metrics_namespace, dashboard=environment.dashboard)
clock: Final = SystemClock()
sqs: Final = steady("sqs")
age: Final = OldestMessage(steady("cloudwatch"), clock)
table: Final = DynamoTable(steady("dynamodb"), environment.table_name)
manifest: Final = Manifest.from_data(MANIFEST)
ports: Final = Ports(
    table=table,
    blobs=S3Blobs(steady("s3"), environment.bucket_name),
    clock=clock,
    randomness=SystemRandomness(),
    queues={
        lane: SqsQueue(sqs, url, age=age) for lane, url in environment.queue_urls(manifest).items()
    },
    dlqs={lane: SqsQueue(sqs, url) for lane, url in environment.dlq_urls.items()},
    parallel=ThreadParallel(CONNECTIONS),
)
reconciler: Final = Reconciler(manifest, ports)


@logger.inject_lambda_context
def lambda_handler(_event: object, context: Any) -> dict[str, Any]:
    """Runs the passes that are due this minute and returns the report."""
    left = timedelta(milliseconds=context.get_remaining_time_in_millis())
    with counted(metrics, clock):
        report = reconciler.run(deadline=clock.now() + left)
    measure(metrics, report, manifest, now=clock.now())
    measure_destinations(metrics, table, manifest, now=clock.now())
    metrics.flush(clock.now())
    return observe(logger, report)
