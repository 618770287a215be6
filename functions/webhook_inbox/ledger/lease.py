"""Claiming a run: one conditional update that gives one worker the lease (G2, G3).

The life of a run's row, and which message may claim it:

    (no row) ── a message with generation 0
       │ pending ──────────────── the message with the current generation
       ▼
    processing ── lease live ──── nobody
       │       └─ lease + 5 s over: the current generation (its worker was lost)
       ├► failed, deferred ────── when due: the current generation; before: who claimed it last
       ├► dead_letter ─────────── a message sent after the death (an SQS redrive)
       ├► held ────────────────── nobody
       └► done, skipped ───────── nobody
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final

from webhook_inbox.domain.conditions import (
    Absent,
    Condition,
    Equals,
    Less,
    OneOf,
    Present,
    either,
    every,
    number,
)
from webhook_inbox.domain.errors import ConditionFailed, InboxError
from webhook_inbox.domain.manifest import HandlerSpec
from webhook_inbox.domain.model import Run, Status, StoredEvent
from webhook_inbox.domain.ports import Change, Item, Key, Message, Table
from webhook_inbox.domain.timestamps import to_ms, to_seconds
from webhook_inbox.ledger.deadlines import overdue_at
from webhook_inbox.ledger.schema import RUN_LIFE, due_bucket, run_from, run_key

# How far the clocks of two workers may be apart: a lease counts as over only that much later,
# and a wait that much earlier. The copy that ends a wait is the only one: dropped for having
# come a moment early by the clock of another worker, it would leave its run to the reconciler.
CLOCK_SKEW: Final = timedelta(seconds=5)


class Refusal(StrEnum):
    """Why a message may not claim its run, which decides what becomes of the message."""

    STALE_GENERATION = "stale-generation"  # replaced by a newer message: drop
    COPY_MISSING = "copy-missing"  # replaced by us, and the copy may never have been sent
    FINISHED = "finished"  # done or skipped: drop
    HELD = "held"  # waits for a person: drop
    CLAIMED_ELSEWHERE = "claimed-elsewhere"  # another message holds the lease: drop
    CLAIMED_HERE = "claimed-here"  # this very message holds the lease: leave it
    NOT_DUE = "not-due"  # another message comes when it is due: drop
    DEAD = "dead"  # given up: let SQS move the message to the DLQ
    EXHAUSTED = "exhausted"  # no attempts left and not yet dead: give up, then the same


class NotClaimable(InboxError):
    """The run may not be attempted through this message."""

    def __init__(self, refusal: Refusal, run: Run | None) -> None:
        super().__init__(str(refusal))
        self.refusal = refusal
        self.run = run


@dataclass(frozen=True, slots=True)
class Lease:
    """The right to attempt a run until `until`; `id` is fresh and random for each claim."""

    id: str
    worker: str
    until: datetime
    code_version: str


def claim(
    table: Table,
    *,
    event: StoredEvent,
    spec: HandlerSpec,
    generation: int,
    message: Message,
    lease: Lease,
    now: datetime,
) -> Run:
    """Takes the lease and returns the run as it is then.

    Raises:
        NotClaimable: with the reason and the run as it was.
        Unavailable: the table failed; the claim may have been made.
    """
    key = run_key(event.source, event.event_id, spec.name)
    change = Change(
        set={
            "source": event.source,
            "event_id": event.event_id,
            "handler": spec.name,
            "type": event.type,
            "status": str(Status.PROCESSING),
            "lease_id": lease.id,
            "claimed_by": lease.worker,
            "claimed_until": to_ms(lease.until),
            "claimed_at": to_ms(now),
            "last_at": to_ms(now),
            "message_id": message.id,
            "code_version": lease.code_version,
            "expires_at": to_seconds(event.received_at + RUN_LIFE),
            **in_order(event, spec.name),
            **_due_index_entry(key, lease, message, generation),
        },
        default={"first_at": to_ms(now)},
        add={"attempt_count": 1, "attempts_in_round": 1, "claims": 1},
        remove=("next_attempt_at", "parked", "resends", "waits_for", "reservations", "held"),
    )
    when = claimable(generation, message, spec.max_attempts, now)
    try:
        return run_from(table.update(key, change, when=when))
    except ConditionFailed as error:
        if error.old is not None and error.old.get("lease_id") == lease.id:
            # An earlier try of this call succeeded and its answer was lost.
            return run_from(error.old)
        run = run_from(error.old) if error.old else None
        raise NotClaimable(refusal(run, generation, message, now), run) from error


def in_order(event: StoredEvent, handler: str) -> Item:
    """Returns the attribute that says what a serial run is in order with."""
    return {"ordering_key": event.ordering_keys[handler]} if handler in event.ordering_keys else {}


def _due_index_entry(key: Key, lease: Lease, message: Message, generation: int) -> Item:
    # A first attempt stays off the index, since nearly all succeed and an index entry costs a
    # write; if its worker dies, its message comes back and is no first receive any more.
    first = message.receive_count == 1 and generation == 0
    shard = {} if first else {"due_bucket": due_bucket(key)}
    return {"due_at": to_ms(overdue_at(lease.until)), **shard}


def current(generation: int) -> Condition:
    """Returns the condition that the row's generation is this one; no generation is generation 0."""
    return number("generation", generation)


def lease_over(now: datetime) -> Condition:
    """Returns the condition that a lease was given and is over on every worker's clock."""
    return every(
        Equals("status", str(Status.PROCESSING)),
        Less("claimed_until", to_ms(now - CLOCK_SKEW)),
    )


def claimable(generation: int, message: Message, max_attempts: int, now: datetime) -> Condition:
    """Returns the condition under which a message may claim its run."""
    sent_again = Equals("status", str(Status.PENDING))
    waiting = OneOf("status", (str(Status.FAILED), str(Status.DEFERRED)))
    due = Less("next_attempt_at", to_ms(now + CLOCK_SKEW) + 1)
    claimed_it_last = Equals("message_id", message.id)
    redriven = every(
        Equals("status", str(Status.DEAD_LETTER)),
        Less("dead_at", to_ms(message.sent_at)),
    )
    attempts_left = either(Absent("attempts_in_round"), Less("attempts_in_round", max_attempts))
    begun = every(
        Present("pk"),
        attempts_left,
        either(
            sent_again,
            every(waiting, either(due, claimed_it_last)),
            lease_over(now),
            redriven,
        ),
    )
    # Only a first message begins a run; a later generation without a row is a row long expired.
    return every(current(generation), either(Absent("pk"), begun) if generation == 0 else begun)


def refusal(run: Run | None, generation: int, message: Message, now: datetime) -> Refusal:
    """Tells why the run could not be claimed through this message."""
    if run is None or run.generation != generation:
        return _stale(run, message)
    if run.status in _SETTLED_REFUSALS:
        return _SETTLED_REFUSALS[run.status]
    if run.status is Status.PROCESSING and _live(run, now):
        same = run.message_id == message.id
        return Refusal.CLAIMED_HERE if same else Refusal.CLAIMED_ELSEWHERE
    if run.status in {Status.FAILED, Status.DEFERRED} and _early(run, message, now):
        return Refusal.NOT_DUE
    return Refusal.EXHAUSTED


_SETTLED_REFUSALS: Final = {
    Status.DONE: Refusal.FINISHED,
    Status.SKIPPED: Refusal.FINISHED,
    Status.HELD: Refusal.HELD,
    Status.DEAD_LETTER: Refusal.DEAD,
}


def _stale(run: Run | None, message: Message) -> Refusal:
    replaced_by_its_worker = (
        run is not None
        and run.status in {Status.FAILED, Status.DEFERRED}
        and run.message_id == message.id
        and not run.parked
    )
    return Refusal.COPY_MISSING if replaced_by_its_worker else Refusal.STALE_GENERATION


# Both in milliseconds, as the condition compares: by the microsecond, a run could be neither
# claimable nor claimed, and be taken for exhausted.


def _live(run: Run, now: datetime) -> bool:
    until = run.claimed_until
    return until is not None and to_ms(until) >= to_ms(now - CLOCK_SKEW)


def _early(run: Run, message: Message, now: datetime) -> bool:
    due = run.next_attempt_at
    is_early = due is not None and to_ms(due) > to_ms(now + CLOCK_SKEW)
    return is_early and run.message_id != message.id
