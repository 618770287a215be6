"""A lane: a work queue and the dead-letter queue that SQS moves used-up messages to."""

import re
from hashlib import sha256
from typing import Final

from aws_cdk import Arn, ArnComponents, Duration, RemovalPolicy, Stack
from aws_cdk import aws_sqs as sqs
from constructs import Construct

# Longer than any lease (the processor's 60 s and a margin), and AWS's own advice of six times
# the function's timeout.
VISIBILITY_TIMEOUT: Final = 360
# Receives that are no attempts: throttled ones, copies that were not due, the burial itself.
SPARE_RECEIVES: Final = 5
RETENTION: Final = 7
# Moving to the DLQ does not restart a message's age, so the DLQ must keep longer.
DEAD_RETENTION: Final = 14


class Lane(Construct):
    """The queues of one lane.

    Args:
        name: the lane, as handlers ask for it.
        max_receive_count: receives after which SQS moves a message to the dead letters.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        stage: str,
        name: str,
        max_receive_count: int,
    ) -> None:
        super().__init__(scope, construct_id)
        queue_name = _queue_name(stage, name)
        self.name = name
        self.dead = sqs.Queue(
            self,
            "DeadLetters",
            encryption=sqs.QueueEncryption.SQS_MANAGED,
            enforce_ssl=True,
            retention_period=Duration.days(DEAD_RETENTION),
            redrive_allow_policy=sqs.RedriveAllowPolicy(
                redrive_permission=sqs.RedrivePermission.BY_QUEUE,
                source_queues=[self._by_name(queue_name)],
            ),
            removal_policy=RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE,
        )
        self.work = sqs.Queue(
            self,
            "Work",
            queue_name=queue_name,
            encryption=sqs.QueueEncryption.SQS_MANAGED,
            enforce_ssl=True,
            retention_period=Duration.days(RETENTION),
            visibility_timeout=Duration.seconds(VISIBILITY_TIMEOUT),
            dead_letter_queue=sqs.DeadLetterQueue(
                queue=self.dead, max_receive_count=max_receive_count
            ),
        )

    def _by_name(self, queue_name: str) -> sqs.IQueue:
        """Names the work queue without referring to it: each of the two names the other."""
        arn = Arn.format(ArnComponents(service="sqs", resource=queue_name), Stack.of(self))
        return sqs.Queue.from_queue_arn(self, "WorkByName", arn)


def _queue_name(stage: str, lane: str) -> str:
    """Returns a name that SQS takes, 1-80 of letters, digits, - and _, and no two lanes share."""
    name = f"webhook-inbox-{stage}-{lane}"
    if re.fullmatch(r"[A-Za-z0-9_-]{1,80}", name):
        return name
    return f"{re.sub(r'[^A-Za-z0-9_-]', '-', name)[:71]}-{sha256(lane.encode()).hexdigest()[:8]}"
