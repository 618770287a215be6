"""Dead or chosen runs → queue; an operator invokes it from the console or the CLI."""

from datetime import timedelta
from typing import Any, Final

from aws_lambda_powertools import Logger
from compiled_manifest import MANIFEST

from replay.telemetry import RunLines, measure, observe
from webhook_inbox.adapters.aws.clients import CONNECTIONS, steady
from webhook_inbox.adapters.aws.dynamodb import DynamoTable
from webhook_inbox.adapters.aws.embedded_metrics import MetricLines
from webhook_inbox.adapters.aws.s3 import S3Blobs
from webhook_inbox.adapters.aws.sqs import SqsQueue
from webhook_inbox.adapters.environment import ReplayEnvironment
from webhook_inbox.adapters.system import SystemClock, SystemRandomness, ThreadParallel
from webhook_inbox.domain.manifest import Manifest
from webhook_inbox.domain.ports import Ports
from webhook_inbox.ledger.queries import Ledger
from webhook_inbox.replay.replay import Replay
from webhook_inbox.replay.request import ReplayRequest

environment: Final = ReplayEnvironment.read()
logger: Final = Logger()
metrics: Final = MetricLines(environment.metrics_namespace, dashboard=environment.dashboard)
clock: Final = SystemClock()
sqs: Final = steady("sqs")
manifest: Final = Manifest.from_data(MANIFEST)
ports: Final = Ports(
    table=DynamoTable(steady("dynamodb"), environment.table_name),
    blobs=S3Blobs(steady("s3"), environment.bucket_name),
    clock=clock,
    randomness=SystemRandomness(),
    queues={lane: SqsQueue(sqs, url) for lane, url in environment.queue_urls(manifest).items()},
    dlqs={lane: SqsQueue(sqs, url) for lane, url in environment.dlq_urls.items()},
    parallel=ThreadParallel(CONNECTIONS),
)
ledger: Final = Ledger(table=ports.table, blobs=ports.blobs)
replay: Final = Replay(manifest, ports, observe=RunLines(logger, ledger))


@logger.inject_lambda_context
def lambda_handler(payload: object, context: Any) -> dict[str, Any]:
    """Replays the runs that the payload selects; raises InvalidRequestError for a bad one."""
    request = ReplayRequest.read(payload)
    left = timedelta(milliseconds=context.get_remaining_time_in_millis())
    report = replay.run(request, deadline=clock.now() + left, request_id=context.aws_request_id)
    measure(metrics, report)
    metrics.flush(clock.now())
    return observe(logger, request, report)
