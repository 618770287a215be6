"""A lane: a work queue and its dead-letter queue."""

from typing import Any, Final

from aws_cdk import Arn, ArnComponents, Duration, RemovalPolicy, Stack
from aws_cdk import aws_sqs as sqs
from constructs import Construct
from webhook_inbox_cdk import names
from webhook_inbox_cdk.waive import waive

from webhook_inbox.ledger.deadlines import VISIBILITY_TIMEOUT

# A message of a standard lane serves one attempt: a wait and the last receive replace it. The
# others cover crashed workers and throttled receives; AWS recommends at least 5 for Lambda. Each
# death uses all of them, so there are no more.
RECEIVES: Final = 5
# A message of a FIFO lane hides for short waits; 1000 receives are the most that SQS allows.
SERIAL_RECEIVES: Final = 1000
# A FIFO queue finds available groups only among its first 120,000 messages:
# https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/FIFO-queues-understanding-logic.html
FIFO_REACH: Final = 120_000
RETENTION: Final = 7
# A message keeps its age in a standard DLQ, which must therefore retain longer. It starts anew in a
# FIFO DLQ, so a FIFO work queue may retain as long.
DEAD_RETENTION: Final = 14


class Lane(Construct):
    """The queues of one lane; a FIFO lane processes the events of an ordering key in order."""

    def __init__(
        self, scope: Construct, construct_id: str, *, name: str, fifo: bool, max_receive_count: int
    ) -> None:
        super().__init__(scope, construct_id)
        work_name = names.queue_name(self, name, fifo=fifo)
        self.name = name
        self.fifo = fifo
        self.max_receive_count = max_receive_count
        self.dead = sqs.Queue(
            self,
            "DeadLetters",
            encryption=sqs.QueueEncryption.SQS_MANAGED,
            enforce_ssl=True,
            retention_period=Duration.days(DEAD_RETENTION),
            redrive_allow_policy=sqs.RedriveAllowPolicy(
                redrive_permission=sqs.RedrivePermission.BY_QUEUE,
                source_queues=[self._by_name(work_name)],
            ),
            removal_policy=RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE,
            **_ordered(fifo=fifo),
        )
        self.work = sqs.Queue(
            self,
            "Work",
            queue_name=work_name,
            encryption=sqs.QueueEncryption.SQS_MANAGED,
            enforce_ssl=True,
            retention_period=Duration.days(DEAD_RETENTION if fifo else RETENTION),
            visibility_timeout=Duration.seconds(VISIBILITY_TIMEOUT.total_seconds()),
            dead_letter_queue=sqs.DeadLetterQueue(
                queue=self.dead, max_receive_count=max_receive_count
            ),
            **_ordered(fifo=fifo),
        )
        for queue in (self.dead, self.work):
            waive(queue, {"CKV_AWS_27": "SSE-SQS encrypts it; the check accepts KMS keys only."})

    def _by_name(self, name: str) -> sqs.IQueue:
        """Refers to the work queue by name, since the two queues refer to each other."""
        arn = Arn.format(ArnComponents(service="sqs", resource=name), Stack.of(self))
        return sqs.Queue.from_queue_arn(self, "WorkByName", arn)


def _ordered(*, fifo: bool) -> dict[str, Any]:
    """Returns the settings of a high-throughput FIFO queue, or none.

    https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/high-throughput-fifo.html
    """
    if not fifo:
        return {}
    return {
        "fifo": True,
        "deduplication_scope": sqs.DeduplicationScope.MESSAGE_GROUP,
        "fifo_throughput_limit": sqs.FifoThroughputLimit.PER_MESSAGE_GROUP_ID,
    }
