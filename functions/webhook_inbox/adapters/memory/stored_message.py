"""A message in a queue in memory."""

from dataclasses import dataclass
from typing import Final

from webhook_inbox.domain.ports import Message
from webhook_inbox.domain.timestamps import from_ms

# A message received so often moves to the back of the queue, and its age no longer counts.
POISON: Final = 3

Fields = tuple[str, str, int, int, int, str, str, int]
# The number of messages ever sent, the messages, and the valid deduplication ids.
Snapshot = tuple[int, tuple[Fields, ...], tuple[tuple[str, int], ...]]


@dataclass(slots=True)
class Stored:
    """One message; times are epoch ms, receipt and `received_at` those of its latest receive."""

    id: str
    body: str
    sent_at: int
    visible_at: int
    receive_count: int = 0
    receipt: str = ""
    group: str = ""
    hops: int = 0
    received_at: int = 0

    @property
    def poison(self) -> bool:
        """True if it was received so often that a standard queue moves it to the back."""
        return self.receive_count >= POISON

    def handed_out(self, queue: str, now: int, hidden_for: int) -> Message:
        """Returns the message for a receive, hidden for so many seconds."""
        self.receive_count += 1
        self.received_at = now
        self.visible_at = now + hidden_for * 1000
        self.receipt = f"{queue}/{self.id}/{self.receive_count}"
        return Message(
            id=self.id,
            receipt=self.receipt,
            body=self.body,
            sent_at=from_ms(self.sent_at),
            receive_count=self.receive_count,
        )

    def fields(self) -> Fields:
        """Returns the identifying attributes, in order.

        `received_at` is left out: it only bounds the visibility timeout, and equal states would
        differ by it.
        """
        return (
            self.id,
            self.body,
            self.sent_at,
            self.visible_at,
            self.receive_count,
            self.receipt,
            self.group,
            self.hops,
        )
