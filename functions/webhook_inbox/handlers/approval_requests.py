"""Approval requests that named people decide outside the terminal, each under a link of their own.

`view` shows a request and changes nothing; `decide` records one person's word, once.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from webhook_inbox.domain.manifest import Manifest
from webhook_inbox.domain.ports import Clock, Randomness, Table
from webhook_inbox.queue.lanes import Lanes


class RequestState(StrEnum):
    """The state of an approval request."""

    OPEN = "open"  # waits for decisions
    APPROVED = "approved"  # enough people approved; none denied
    DENIED = "denied"  # one person denied
    EXPIRED = "expired"  # not decided in time
    VOID = "void"  # the effect was asked with other arguments, or its run ended


class Word(StrEnum):
    """A person's decision."""

    APPROVE = "approve"
    DENY = "deny"


class DecisionOutcome(StrEnum):
    """The outcome of `ApprovalRequests.decide`."""

    RECORDED = "recorded"  # the decision is recorded
    REPEATED = "repeated"  # the same person decided the same before
    CONFLICT = "conflict"  # the same person decided otherwise before
    EXPIRED = "expired"  # too late; nothing was recorded
    VOID = "void"  # the request no longer applies; nothing was recorded
    UNKNOWN = "unknown"  # no such request, or the person is not asked
    CLOSED = "closed"  # decided by others; nothing was recorded


@dataclass(frozen=True, slots=True)
class RequestAddress:
    """Identifies one request; `round` grows from 1 when a replay asks anew.

    `subject` is like "effect:refund", `fingerprint` the SHA-256 of the normalised arguments in hex.
    """

    source: str
    event_id: str
    handler: str
    subject: str
    fingerprint: str
    round: int


@dataclass(frozen=True, slots=True)
class GivenDecision:
    """A person's decision; `proof` is how the name is known: "link", "sts", "local"."""

    word: Word
    at: datetime
    reason: str
    proof: str


@dataclass(frozen=True, slots=True)
class RequestView:
    """A request as its approvers see it.

    Attributes:
        address: identifies it.
        question: one sentence.
        effect: the effect's name.
        arguments: the normalised JSON of the effect's arguments.
        people: the people who are asked or who decided, each with the decision, if any.
        count: the approvals that are needed.
        opened_at: when it was asked.
        expires_at: when it ends undecided.
        state: its state at the time of the read.
    """

    address: RequestAddress
    question: str
    effect: str
    arguments: str
    people: Mapping[str, GivenDecision | None]
    count: int
    opened_at: datetime
    expires_at: datetime
    state: RequestState


class ApprovalRequests:
    """Shows and decides approval requests."""

    def __init__(
        self,
        *,
        table: Table,
        manifest: Manifest,
        lanes: Lanes,
        clock: Clock,
        randomness: Randomness,
    ) -> None:
        self._table = table
        self._manifest = manifest
        self._lanes = lanes
        self._clock = clock
        self._randomness = randomness

    def view(self, address: RequestAddress) -> RequestView | None:
        """Returns a request, None if it is unknown; never writes.

        Raises:
            Unavailable: the ledger failed.
        """
        raise NotImplementedError

    def decide(
        self, address: RequestAddress, person: str, word: Word, reason: str
    ) -> DecisionOutcome:
        """Records a person's decision; the last one that is needed continues or ends the run.

        Raises:
            Unavailable: the ledger failed; the decision may be recorded, and can be repeated.
        """
        raise NotImplementedError
