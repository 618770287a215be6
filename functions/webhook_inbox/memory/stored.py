"""A message as a queue in memory keeps it."""

from dataclasses import dataclass
from typing import Final

from webhook_inbox.instants import from_ms
from webhook_inbox.ports import Message

# A message received so often goes to the back of the queue, and its age is counted no more.
POISON: Final = 3

Fields = tuple[str, str, int, int, int, str, int, str, int]
# How many messages were ever sent, each that is there, and the deduplication ids in force.
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
    received_at: int = 0
    group: str = ""
    hops: int = 0

    @property
    def poison(self) -> bool:
        """Whether it was received so often that a standard queue sets it back."""
        return self.receive_count >= POISON

    def handed_out(self, queue: str, now: int, hidden_for: int) -> Message:
        """Returns it as it is received from a queue, for so many seconds."""
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

    def fields(self, now: int) -> Fields:
        """Returns what tells it from others; when it was received counts while it is hidden."""
        return (
            self.id,
            self.body,
            self.sent_at,
            self.visible_at,
            self.receive_count,
            self.receipt,
            self.received_at if self.visible_at > now else 0,
            self.group,
            self.hops,
        )
