"""The records of the inbox. All are frozen; every time is aware and in UTC."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final

from webhook_inbox.domain.timestamps import from_ms

if TYPE_CHECKING:
    # Ingest loads no audit.
    from webhook_inbox.domain.audit import AuditEntry


class Status(StrEnum):
    """The status of a run."""

    PENDING = "pending"  # sent (again) by replay, approval or reconciler, not begun
    PROCESSING = "processing"  # a worker holds the lease, or held it and crashed
    FAILED = "failed"  # will be retried at its due time
    DEFERRED = "deferred"  # waits for an external condition; no attempt is counted
    HELD = "held"  # waits for a person
    DEAD_LETTER = "dead_letter"  # given up, by a `DeathCause`
    DONE = "done"  # finished: never attempted again
    SKIPPED = "skipped"  # finished: there was nothing to do


class EventStatus(StrEnum):
    """The status of an event: the first of these, in this order, that any of its runs has."""

    DEAD_LETTER = "dead_letter"
    HELD = "held"
    FAILED = "failed"
    DEFERRED = "deferred"
    PROCESSING = "processing"
    PENDING = "pending"
    ACCEPTED = "accepted"  # stored; at least one run has not begun
    DONE = "done"
    SKIPPED = "skipped"  # every run was skipped, or no handler wants this type


# The due index does not list every run in such a status: they are found by the time of receipt.
BY_RECEIPT: Final = frozenset(
    {EventStatus.PROCESSING, EventStatus.ACCEPTED, EventStatus.DONE, EventStatus.SKIPPED}
)


class SkipReason(StrEnum):
    """Why a run was skipped; the run's error says it in words."""

    HANDLER = "handler"  # the handler raised Skipped
    DENIED = "denied"  # a policy or a person denied it
    STALE = "stale"  # order "latest": a newer version of the object was begun
    APPLIED = "applied"  # order "sequence": the number was applied before
    LIMIT = "limit"  # a destination was over its rate, with on_limit = "drop"
    GONE = "gone"  # the object no longer exists at the provider
    LOOP = "loop"  # a chain of calls between agents returned, or is too long
    OPERATOR = "operator"  # a person closed it while it was dead


class RequestState(StrEnum):
    """The state of a request for approval."""

    OPEN = "open"  # waits for decisions
    APPROVED = "approved"  # enough people approved, and none denied
    DENIED = "denied"  # one person denied
    EXPIRED = "expired"  # undecided in time
    VOID = "void"  # the effect was requested with other arguments, or the run has ended


class ApprovalOutcome(StrEnum):
    """The outcome of a decision about a held run."""

    APPROVED = "approved"  # the run continues; its message is sent
    UNSENT = "unsent"  # the run continues; the reconciler sends its message within minutes
    DENIED = "denied"  # the run is skipped
    MOVED_ON = "moved_on"  # no longer held for this request: nothing was decided
    EXPIRED = "expired"  # the event has expired: nothing was decided
    COUNTED = "counted"  # one approval of several that are needed: the run stays held
    REPEATED = "repeated"  # this person has decided before: the run stays held
    NOT_ASKED = "not_asked"  # named people approve, and this caller is not one: nothing was decided
    CLOSED = "closed"  # the people's request has ended: the run looks at it by itself


class DropReason(StrEnum):
    """Why an event was stored without runs although a handler wants its type."""

    IDENTICAL_BODY = "identical-body"  # the source's identical_body = "drop"


class TypeDoubt(StrEnum):
    """Why the type of a verified event is not certain; each handler of its source is then held."""

    UNREADABLE = "unreadable"  # the type is sought in a body that cannot be read
    CONTRADICTED = "contradicted"  # an unsigned header contradicts the signed body


SETTLED: Final = frozenset({Status.DONE, Status.SKIPPED})


def event_status(names: Iterable[str], statuses: Mapping[str, Status]) -> EventStatus:
    """Returns an event's status.

    Args:
        names: the handlers whose runs the event has.
        statuses: the status of each run that has a row, by handler.
    """
    seen: set[str] = set(statuses.values())
    if any(name not in statuses for name in names):
        seen.add(EventStatus.ACCEPTED)
    return next((status for status in EventStatus if status in seen), EventStatus.SKIPPED)


@dataclass(frozen=True, slots=True)
class Delivery:
    """One HTTP request of a provider, unchanged.

    Header names are lower-case, and repeated headers are joined by commas, as HTTP API does.
    `request_id` is the gateway's; it distinguishes equal deliveries. The body of a delivery that is
    not `verified` is parsed at a bounded cost only: see `bounded_json`.
    """

    source: str
    method: str
    path: str
    query: str
    headers: Mapping[str, str]
    body: bytes
    received_at: datetime
    request_id: str = ""
    verified: bool = False


@dataclass(frozen=True, slots=True)
class StoredEvent:
    """An accepted event as the ledger stores it; never changed.

    `agent` is the authenticated sender, "" if the source has only one. `ordering_keys` has the
    ordering key of each serial run, by handler. `identical_to` is the id of the first event with
    this signed content, "" if this is the first; `tenant` is "" if it has none. The runs of a
    `held` event begin held. `dropped` is the `DropReason` of an event without runs, "" for none.
    `doubt` is the `TypeDoubt` of its type, "" for none.
    An event with `erased_at` has no payload any more. `batch` is the fingerprint in the id of the
    batch that an item was cut out of, "" for an event that was received by itself.
    """

    source: str
    event_id: str
    type: str
    received_at: datetime
    body: bytes
    fingerprint: str
    headers: Mapping[str, str]
    runs: tuple[str, ...]
    signature_hash: str = ""
    verified_with: int = 0
    occurred_at: datetime | None = None
    guard: str = ""
    request_id: str = ""
    agent: str = ""
    ordering_keys: Mapping[str, str] = field(default_factory=dict)
    identical_to: str = ""
    held: bool = False
    dropped: str = ""
    doubt: str = ""
    erased_at: datetime | None = None
    tenant: str = ""
    batch: str = ""


# The outcome of an attempt that failed because the circuit of its destination is open.
NOT_COUNTED: Final = "not counted"


@dataclass(frozen=True, slots=True)
class Attempt:
    """One entry of a run's history; `number` counts from 1, and old entries are dropped.

    The attempt after one that is not counted has the same number. `worker` is its function and the
    id of its invocation, separated by a slash.
    """

    number: int
    started_at: datetime
    ended_at: datetime
    outcome: str
    error: str = ""
    worker: str = ""
    code_version: str = ""

    @property
    def counted(self) -> bool:
        """True unless it failed because the circuit of its destination is open."""
        return self.outcome != NOT_COUNTED


@dataclass(frozen=True, slots=True)
class Run:
    """One handler's work on one event.

    Attributes:
        progress: the position of a run that splits a batch, for its next attempt.
        held: the approval request: subject, reason, shows, fingerprint, at, and `identical_to`
            where the event is held for its body. Where people were asked, `request` is the sort key
            of the request's row, `wake_at` the time at which the run looks again, and
            `unannounced` says why a person was not told, by name.
        approvals: the decisions by subject: by, reason, at, fingerprint.
        waits_for: the condition a deferred run waits for, like "destination crm" or "resumption".
        reservations: the time, in ms, from which it may call a destination, by destination.
        ordering_key: the ordering key of a serial run.
        blocking: whether it is dead and blocks its ordering key.
        place: the number of its last entry in the line of its ordering key, 0 for none.
        deaths: how often it became a dead letter.
        claims: the number of leases, deferrals included; it distinguishes attempts.
        tenant: the tenant of its event, "" if it has none.
        error_line: the handler's file and line of `last_error`, like "handlers/orders.py:12", ""
            where no line of a handler raised it.
        key_version: how often an operator chose new keys for its effects and jobs.
        error_class: the name of the class of `last_error`, "" where no exception was raised.
        attempt_limit: the attempts that its last error allows, 0 where its handler's limit holds.
        skip_reason: the `SkipReason` of a skipped run.
        added: whether a replay created it, since its event was stored without it.
        resumed_at: when a person, the resumption of its handler, or its turn last resumed it.
    """

    source: str
    event_id: str
    handler: str
    type: str
    status: Status
    generation: int = 0
    attempt_count: int = 0
    attempts_in_round: int = 0
    lease_id: str = ""
    claimed_by: str = ""
    claimed_until: datetime | None = None
    claimed_at: datetime | None = None
    message_id: str = ""
    next_attempt_at: datetime | None = None
    parked: bool = False
    resends: int = 0
    first_at: datetime | None = None
    last_at: datetime | None = None
    done_at: datetime | None = None
    dead_at: datetime | None = None
    unknown_since: datetime | None = None
    resumed_at: datetime | None = None
    last_error: str = ""
    error_line: str = ""
    error_class: str = ""
    attempts: tuple[Attempt, ...] = ()
    code_version: str = ""
    replays: tuple[Mapping[str, Any], ...] = ()
    progress: Mapping[str, Any] = field(default_factory=dict)
    held: Mapping[str, Any] = field(default_factory=dict)
    approvals: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    waits_for: str = ""
    reservations: Mapping[str, int] = field(default_factory=dict)
    ordering_key: str = ""
    blocking: bool = False
    place: int = 0
    claims: int = 0
    tenant: str = ""
    key_version: int = 0
    deaths: int = 0
    attempt_limit: int = 0
    skip_reason: str = ""
    added: bool = False
    expires_at: datetime | None = None
    in_due_index: bool = False

    @property
    def counted_attempts(self) -> tuple[Attempt, ...]:
        """The entries of its history that count."""
        return tuple(attempt for attempt in self.attempts if attempt.counted)

    @property
    def last_reported(self) -> int:
        """The number of the last counted attempt that its worker reported, 0 for none."""
        # The last counted entry may have been dropped; those that are not counted are numbered
        # after it.
        return max((each.number - (not each.counted) for each in self.attempts), default=0)

    @property
    def forced(self) -> bool:
        """True if an operator forced the replay of the finished run."""
        return bool(self.replays and self.replays[-1].get("forced"))

    @property
    def round_began_at(self) -> datetime | None:
        """When the run was first begun, last replayed or last resumed.

        Its maximum age counts from then.
        """
        began = from_ms(self.replays[-1]["at"]) if self.replays else self.first_at
        return max(filter(None, (began, self.resumed_at)), default=None)


@dataclass(frozen=True, slots=True)
class Overview:
    """One event with its runs, effects, waits and operator actions, as an operator sees it."""

    event: StoredEvent
    runs: Sequence[Run] = field(default_factory=tuple)
    effects: Sequence[Mapping[str, Any]] = field(default_factory=tuple)
    waits: Sequence[Mapping[str, Any]] = field(default_factory=tuple)
    actions: Sequence["AuditEntry"] = field(default_factory=tuple)

    @property
    def status(self) -> EventStatus:
        """The status of the event."""
        return event_status(self.event.runs, {run.handler: run.status for run in self.runs})


class WaitStrategy(StrEnum):
    """How the queue implements a run's wait."""

    HIDDEN = "hidden"  # the visibility timeout of its message; FIFO lanes only
    COPY = "copy"  # a delayed copy with the next generation; the message is deleted
    PARKED = "parked"  # ledger only; the reconciler sends it when due


# The type of a delivery that holds many events, and the prefix of its id.
BATCH: Final = "batch"


def is_batch(event_id: str, type_: str) -> bool:
    """Returns whether an event with this id and type is a batch."""
    return type_ == BATCH and event_id.startswith(f"{BATCH}:")
