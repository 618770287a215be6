"""Leases a run: one conditional update gives one worker the lease (G2, G3).

The states of a run's row, and the message that may lease it:

    (no row) ── a message of generation 0, unless its event is held
       │ pending ──────────────── the message of the current generation
       ▼
    processing ── lease live ──── none
       │       └─ lease + 5 s over: the current generation (the worker was lost)
       ├► failed, deferred ────── when due: the current generation; before: the same message
       ├► dead_letter ─────────── a message sent after the death (an SQS redrive)
       ├► held ────────────────── none
       └► done, skipped ───────── none
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
from webhook_inbox.domain.timestamps import to_ms
from webhook_inbox.ledger.deadlines import overdue_at
from webhook_inbox.ledger.schema import (
    RUN_LIFE,
    due_entry,
    run_from,
    run_identity,
    run_key,
    transition,
)

# The assumed difference between two workers' clocks: a lease ends that much later, and a wait
# that much earlier. The copy that ends a wait is the only one: if it were deleted because another
# worker's clock is slow, only the reconciler would resume the run.
CLOCK_SKEW: Final = timedelta(seconds=5)


class Refusal(StrEnum):
    """Why a message may not lease its run; decides what the processor does with the message."""

    STALE_GENERATION = "stale-generation"  # a newer message replaced it: delete
    COPY_MISSING = "copy-missing"  # its own worker replaced it, and may not have sent the copy
    FINISHED = "finished"  # done or skipped: delete
    HELD = "held"  # waits for an approval: delete
    CLAIMED_ELSEWHERE = "claimed-elsewhere"  # leased through another message: delete
    CLAIMED_HERE = "claimed-here"  # leased through this very message: keep it
    NOT_DUE = "not-due"  # another message arrives when it is due: delete
    DEAD = "dead"  # let SQS move the message to the DLQ
    EXHAUSTED = "exhausted"  # no attempts left and not yet dead: give up, then as dead


class NotClaimable(InboxError):
    """The run may not be leased through this message."""

    def __init__(self, refusal: Refusal, run: Run | None) -> None:
        super().__init__(str(refusal))
        self.refusal = refusal
        self.run = run


@dataclass(frozen=True, slots=True)
class Lease:
    """The right to attempt a run until `until`; `id` is random and new for each lease."""

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
    """Takes the lease and returns the leased run.

    Raises:
        NotClaimable: with the reason and the unchanged run.
        Unavailable: the table failed; the lease may have been taken.
    """
    require_decision(event, generation)
    key = run_key(event.source, event.event_id, spec.name)
    change = Change(
        set={
            **run_identity(event, spec.name, expires_at=event.received_at + RUN_LIFE),
            "status": str(Status.PROCESSING),
            "lease_id": lease.id,
            "claimed_by": lease.worker,
            "claimed_until": to_ms(lease.until),
            "claimed_at": to_ms(now),
            "last_at": to_ms(now),
            "message_id": message.id,
            "code_version": lease.code_version,
            **_due_index_entry(key, lease, message, generation),
        },
        default={"first_at": to_ms(now)},
        add={"attempt_count": 1, "attempts_in_round": 1, "claims": 1},
        remove=("next_attempt_at", "parked", "resends", "waits_for", "reservations", "held"),
    )
    when = claimable(generation, message, spec.max_attempts, now)
    try:
        return run_from(transition(table, key, change, when=when, own={"lease_id": lease.id}))
    except ConditionFailed as error:
        run = run_from(error.old) if error.old else None
        raise NotClaimable(refusal(run, generation, message, now), run) from error


def require_decision(event: StoredEvent, generation: int) -> None:
    """Refuses the first message of a held event: a person's decision sends the next generation.

    Raises:
        NotClaimable: the event is held, and the message is of generation 0.
    """
    if event.held and generation == 0:
        raise NotClaimable(Refusal.STALE_GENERATION, None)


def _due_index_entry(key: Key, lease: Lease, message: Message, generation: int) -> Item:
    # A first attempt is not listed: nearly all succeed, and an index entry costs a write. If the
    # worker dies, the message is received a second time, and the run is listed then.
    entry = due_entry(key, overdue_at(lease.until))
    first = message.receive_count == 1 and generation == 0
    return {"due_at": entry["due_at"]} if first else entry


def current(generation: int) -> Condition:
    """Returns the condition that the row is of this generation; a row without one is of 0."""
    return number("generation", generation)


def lease_over(now: datetime) -> Condition:
    """Returns the condition that a lease is over on every worker's clock."""
    return every(
        Equals("status", str(Status.PROCESSING)),
        Less("claimed_until", to_ms(now - CLOCK_SKEW)),
    )


def claimable(generation: int, message: Message, max_attempts: int, now: datetime) -> Condition:
    """Returns the condition under which a message may lease its run."""
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
    # Only generation 0 creates a row; a later generation without a row is of an expired run.
    return every(current(generation), either(Absent("pk"), begun) if generation == 0 else begun)


def has_died(run: Run, generation: int, message: Message) -> bool:
    """Tells whether a run is dead for this message, which is then no redrive."""
    died = run.status is Status.DEAD_LETTER and run.generation == generation
    return died and run.dead_at is not None and to_ms(run.dead_at) >= to_ms(message.sent_at)


def refusal(run: Run | None, generation: int, message: Message, now: datetime) -> Refusal:
    """Tells why the run could not be leased through this message."""
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


# Both compare milliseconds, as the condition does: with microseconds, a run could be neither
# claimable nor leased, and would count as exhausted.


def _live(run: Run, now: datetime) -> bool:
    until = run.claimed_until
    return until is not None and to_ms(until) >= to_ms(now - CLOCK_SKEW)


def _early(run: Run, message: Message, now: datetime) -> bool:
    due = run.next_attempt_at
    is_early = due is not None and to_ms(due) > to_ms(now + CLOCK_SKEW)
    return is_early and run.message_id != message.id
