"""Work queues in SQS, and the age of their oldest message in CloudWatch."""

from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from itertools import chain
from typing import Any, Final

from webhook_inbox.adapters.aws import errors
from webhook_inbox.domain.errors import Unavailable
from webhook_inbox.domain.ports import Backlog, Clock, Message, Outgoing
from webhook_inbox.domain.quotas import batches, takes
from webhook_inbox.domain.timestamps import from_ms

# Returns the age of the oldest message of a queue with this name; see `OldestMessage`.
Age = Callable[[str], timedelta | None]
COUNTS: Final = (
    "ApproximateNumberOfMessages",
    "ApproximateNumberOfMessagesNotVisible",
    "ApproximateNumberOfMessagesDelayed",
)


def count_messages(client: Any, urls: Mapping[str, str]) -> dict[str, int]:
    """Returns the approximate number of messages of each queue: visible, in flight and delayed.

    Raises:
        Unavailable: SQS failed; AccessDenied: it refused the call.
    """
    return {name: _count(client, url) for name, url in urls.items()}


def _count(client: Any, url: str) -> int:
    def attempt() -> Any:
        return client.get_queue_attributes(QueueUrl=url, AttributeNames=list(COUNTS))

    found = errors.once("sqs", "GetQueueAttributes", attempt)["Attributes"]
    return sum(int(found.get(name, 0)) for name in COUNTS)


class SqsQueue:
    """The port `Queue`; `age` returns the age of the oldest message, which SQS does not report."""

    def __init__(
        self, client: Any, url: str, *, age: Age | None = None, call: errors.Caller = errors.once
    ) -> None:
        self._client = client
        self._url = url
        self._fifo = url.endswith(".fifo")
        self._age = age
        self._call = call

    @property
    def fifo(self) -> bool:
        """See the port."""
        return self._fifo

    def send(self, messages: Sequence[Outgoing]) -> Sequence[Outgoing]:
        """See the port; invalid messages are not sent, since one would fail its whole batch."""
        refused = [message for message in messages if not takes(message, fifo=self._fifo)]
        waiting = list(batches([m for m in messages if takes(m, fifo=self._fifo)]))
        while waiting:
            left = self._send_batch(waiting.pop(0))
            refused += left
            if left and self._fifo:
                return refused + list(chain.from_iterable(waiting))
        return refused

    def hide(self, receipt: str, seconds: int) -> None:
        """See the port."""
        self._ask(
            "ChangeMessageVisibility",
            self._client.change_message_visibility,
            ReceiptHandle=receipt,
            VisibilityTimeout=seconds,
        )

    def receive(self, limit: int, *, hidden_for: int) -> Sequence[Message]:
        """See the port."""
        answer = self._ask(
            "ReceiveMessage",
            self._client.receive_message,
            MaxNumberOfMessages=limit,
            VisibilityTimeout=hidden_for,
            WaitTimeSeconds=0,
            MessageSystemAttributeNames=["SentTimestamp", "ApproximateReceiveCount"],
        )
        return [_message(received) for received in answer.get("Messages", [])]

    def delete(self, receipt: str) -> None:
        """See the port."""
        self._ask("DeleteMessage", self._client.delete_message, ReceiptHandle=receipt)

    def backlog(self) -> Backlog:
        """See the port."""
        answer = self._ask(
            "GetQueueAttributes",
            self._client.get_queue_attributes,
            AttributeNames=["ApproximateNumberOfMessages"],
        )
        return Backlog(
            visible=int(answer["Attributes"]["ApproximateNumberOfMessages"]), oldest=self._oldest()
        )

    def _oldest(self) -> timedelta | None:
        # Optional: a failure of CloudWatch must not delay a lost message.
        try:
            return self._age(self._url.rpartition("/")[2]) if self._age else None
        except Unavailable:
            return None

    def _send_batch(self, batch: Sequence[Outgoing]) -> list[Outgoing]:
        answer = self._ask(
            "SendMessageBatch",
            self._client.send_message_batch,
            Entries=[self._entry(number, message) for number, message in enumerate(batch)],
        )
        taken = {entry["Id"] for entry in answer.get("Successful", [])}
        return [message for number, message in enumerate(batch) if str(number) not in taken]

    def _entry(self, number: int, message: Outgoing) -> dict[str, Any]:
        entry: dict[str, Any] = {"Id": str(number), "MessageBody": message.body}
        if not self._fifo:
            fair = {"MessageGroupId": message.group} if message.group else {}
            return entry | {"DelaySeconds": message.delay} | fair
        # FIFO queues do not support a delay per message.
        named = {"MessageGroupId": message.group, "MessageDeduplicationId": message.dedup}
        return entry | named

    def _ask(self, operation: str, method: Callable[..., Any], **parameters: Any) -> Any:
        return self._call("sqs", operation, lambda: method(QueueUrl=self._url, **parameters))


def _message(received: dict[str, Any]) -> Message:
    attributes = received["Attributes"]
    return Message(
        id=received["MessageId"],
        receipt=received["ReceiptHandle"],
        body=received["Body"],
        sent_at=from_ms(int(attributes["SentTimestamp"])),
        receive_count=int(attributes["ApproximateReceiveCount"]),
    )


# Datapoints are per minute and arrive minutes late; a queue inactive for 6 h has none.
LOOK_BACK: Final = timedelta(minutes=10)


class OldestMessage:
    """The age of the oldest message of a queue, as of some minutes ago."""

    def __init__(self, client: Any, clock: Clock, *, call: errors.Caller = errors.once) -> None:
        self._client = client
        self._clock = clock
        self._call = call

    def __call__(self, queue_name: str) -> timedelta | None:
        """Returns the age, or None if there is no datapoint.

        Raises:
            Unavailable: CloudWatch failed.
        """
        now = self._clock.now()
        answer = self._call(
            "cloudwatch",
            "GetMetricStatistics",
            lambda: self._client.get_metric_statistics(
                Namespace="AWS/SQS",
                MetricName="ApproximateAgeOfOldestMessage",
                Dimensions=[{"Name": "QueueName", "Value": queue_name}],
                StartTime=now - LOOK_BACK,
                EndTime=now,
                Period=60,
                Statistics=["Maximum"],
            ),
        )
        latest = max(answer.get("Datapoints", []), key=lambda d: d["Timestamp"], default=None)
        return None if latest is None else timedelta(seconds=float(latest["Maximum"]))
