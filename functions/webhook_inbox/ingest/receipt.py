"""The outcome of a delivery, and the HTTP answer that it gets."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from webhook_inbox.domain.metrics import Duplicate
from webhook_inbox.domain.provider import Answer


class IngestOutcome(StrEnum):
    """The outcome of a delivery, or of one item of a batch."""

    ACCEPTED = "accepted"  # a new event, stored, its runs sent
    DUPLICATE = "duplicate"  # known, and its runs are under way or done
    HELD = "held"  # a new event with a known body: stored, its runs wait for a person (G6)
    UNREADABLE = "unreadable"  # a new event whose type cannot be read: stored, its runs held
    CONTRADICTED = "contradicted"  # a header contradicts its signed type: stored, its runs held
    REPLAYED = "replayed"  # known signed content, and the source or the bytes forbid it to run (G6)
    CONFLICT = "conflict"  # known id, other content: refused and stored aside (G7)
    IGNORED = "ignored"  # a type that this source does not store
    HANDSHAKE = "handshake"  # a challenge, answered
    ENROLLED = "enrolled"  # a secret, delivered by the provider and stored
    CONTESTED = "contested"  # two secrets in one enrolment: neither is accepted
    REJECTED = "rejected"  # failed verification: stored aside, within bounds
    NO_SECRET = "no-secret"  # cannot be verified yet: stored aside, and the provider retries
    # The provider's published key cannot be fetched: stored aside, and the provider retries.
    KEY_UNAVAILABLE = "key-unavailable"
    UNCONFIRMED = "unconfirmed"  # the provider's confirmation URL failed: the provider retries
    UNKNOWN_SOURCE = "unknown-source"
    WRONG_METHOD = "wrong-method"
    UNAVAILABLE = "unavailable"  # storage or queue failed: the provider retries
    BROKEN = "broken"  # a fault of this software: the provider retries


# A new event was stored.
NEW: Final = frozenset(
    {
        IngestOutcome.ACCEPTED,
        IngestOutcome.HELD,
        IngestOutcome.UNREADABLE,
        IngestOutcome.CONTRADICTED,
    }
)
# The event is in the ledger.
STORED: Final = NEW | {IngestOutcome.DUPLICATE}


@dataclass(frozen=True, slots=True)
class Receipt:
    """The outcome of a delivery and the HTTP status of its answer.

    `reason` and `detail` say why a delivery was not accepted; neither holds a secret. `secret` is
    the index of the live secret that verified it; `retry` and `retry_reason` are the provider's
    own count of its retries. `duplicate` is the kind of a delivery that is known. `request_id` is
    the gateway's, `trace_id` that of the event's trace. `status_url` is that of the event, "" for
    none; it has a token, so no log line has it.
    """

    outcome: IngestOutcome
    status: int
    source: str = ""
    event_id: str = ""
    type: str = ""
    reason: str = ""
    detail: str = ""
    answer: Answer | None = None
    secret: int | None = None
    handlers: tuple[str, ...] = ()
    retry: int | None = None
    retry_reason: str = ""
    duplicate: Duplicate | None = None
    request_id: str = ""
    trace_id: str = ""
    status_url: str = ""
