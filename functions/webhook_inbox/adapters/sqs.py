"""A queue in SQS."""

from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta
from typing import Any

from webhook_inbox.adapters import calls
from webhook_inbox.errors import Unavailable
from webhook_inbox.instants import from_ms
from webhook_inbox.limits import DELAY_SECONDS, MESSAGE_BYTES, SEND_BATCH, sendable, text_size
from webhook_inbox.ports import Backlog, Message, Outgoing

# Given a queue's name, the age of its oldest message; see `cloudwatch.OldestMessage`.
Age = Callable[[str], timedelta | None]


class SqsQueue:
    """The port `Queue` over one standard queue.

    Args:
        client: a low-level SQS client.
        url: the queue's URL.
        age: where the age of its oldest message is known; SQS itself does not tell.
        call: how calls are made; `calls.once`, or `clients.quick_caller`.
    """

    def __init__(
        self,
        client: Any,
        url: str,
        *,
        age: Age | None = None,
        call: calls.Caller = calls.once,
    ) -> None:
        self._client = client
        self._url = url
        self._age = age
        self._call = call

    def send(self, messages: Sequence[Outgoing]) -> Sequence[Outgoing]:
        """See the port.

        What SQS would refuse is not even sent: one such message would fail its whole batch.
        """
        refused = [message for message in messages if not _sendable(message)]
        for batch in _batches([message for message in messages if _sendable(message)]):
            refused += self._send_batch(batch)
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
            visible=int(answer["Attributes"]["ApproximateNumberOfMessages"]),
            oldest=self._oldest(),
        )

    def _oldest(self) -> timedelta | None:
        # Good to know, and no reason to let a lost message wait while CloudWatch is down.
        try:
            return self._age(self._url.rpartition("/")[2]) if self._age else None
        except Unavailable:
            return None

    def _send_batch(self, batch: Sequence[Outgoing]) -> list[Outgoing]:
        answer = self._ask(
            "SendMessageBatch",
            self._client.send_message_batch,
            Entries=[
                {"Id": str(number), "MessageBody": message.body, "DelaySeconds": message.delay}
                for number, message in enumerate(batch)
            ],
        )
        taken = {entry["Id"] for entry in answer.get("Successful", [])}
        return [message for number, message in enumerate(batch) if str(number) not in taken]

    def _ask(self, operation: str, method: Callable[..., Any], **parameters: Any) -> Any:
        return self._call("sqs", operation, lambda: method(QueueUrl=self._url, **parameters))


def _sendable(message: Outgoing) -> bool:
    return sendable(message.body) and 0 <= message.delay <= DELAY_SECONDS


def _batches(messages: Sequence[Outgoing]) -> Iterator[list[Outgoing]]:
    """Yields the messages in batches of up to 10 that are together no longer than one may be."""
    batch: list[Outgoing] = []
    size = 0
    for message in messages:
        added = text_size(message.body)
        if batch and (len(batch) == SEND_BATCH or size + added > MESSAGE_BYTES):
            yield batch
            batch, size = [], 0
        batch.append(message)
        size += added
    if batch:
        yield batch


def _message(received: dict[str, Any]) -> Message:
    attributes = received["Attributes"]
    return Message(
        id=received["MessageId"],
        receipt=received["ReceiptHandle"],
        body=received["Body"],
        sent_at=from_ms(int(attributes["SentTimestamp"])),
        receive_count=int(attributes["ApproximateReceiveCount"]),
    )
