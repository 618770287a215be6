"""Defers a run before it is leased, and resumes parked runs; no attempt is counted.

A message may defer a run exactly when it may lease it. A deferral raises the generation.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from webhook_inbox.domain.conditions import Condition
from webhook_inbox.domain.errors import ConditionFailed
from webhook_inbox.domain.manifest import HandlerSpec
from webhook_inbox.domain.model import Run, Status, StoredEvent, WaitStrategy
from webhook_inbox.domain.ports import Change, Item, Message, Table
from webhook_inbox.domain.timestamps import to_ms
from webhook_inbox.ledger.deadlines import overdue_at
from webhook_inbox.ledger.lease import NotClaimable, claimable, refusal, require_decision
from webhook_inbox.ledger.pauses import RESUMPTIONS
from webhook_inbox.ledger.schema import (
    RUN_LIFE,
    WAKE,
    WATCH,
    due_entry,
    key_of_run,
    run_from,
    run_identity,
    run_key,
    transition,
)
from webhook_inbox.ledger.settle import cut


@dataclass(frozen=True, slots=True)
class Deferral:
    """A wait before the lease.

    Attributes:
        due: the end of the wait.
        wait: how it is implemented.
        waits_for: "destination crm", "resumption" and the like.
        why: the same as a sentence.
        reservations: when the run may call its destinations, in epoch ms, by destination.
        counts: whether the wait counts towards the run's maximum age.
        place: see `Run.place`.
        check: when the reconciler reads a parked run, if not at `due`.
    """

    due: datetime
    wait: WaitStrategy
    waits_for: str
    why: str
    reservations: Mapping[str, int] = field(default_factory=dict)
    counts: bool = True
    place: int = 0
    check: datetime | None = None


def defer(
    table: Table,
    *,
    event: StoredEvent,
    spec: HandlerSpec,
    generation: int,
    message: Message,
    deferral: Deferral,
    now: datetime,
) -> Run:
    """Defers a run and returns it, with the generation of its next message.

    Raises:
        NotClaimable: the message may not lease the run.
        Unavailable: the table failed; the run may be deferred.
    """
    require_decision(event, generation)
    key = run_key(event.source, event.event_id, spec.name)
    change = _change(event, spec, message, deferral, now)
    when = claimable(generation, message, spec.max_attempts, now)
    own = {**change.set, "generation": generation + 1}
    try:
        return run_from(transition(table, key, change, when=when, own=own))
    except ConditionFailed as error:
        run = run_from(error.old) if error.old else None
        raise NotClaimable(refusal(run, generation, message, now), run) from error


def _change(
    event: StoredEvent, spec: HandlerSpec, message: Message, deferral: Deferral, now: datetime
) -> Change:
    parked = deferral.wait is WaitStrategy.PARKED
    look, kind = (deferral.due, WAKE) if parked else (overdue_at(deferral.due), WATCH)
    look = deferral.check or look
    key = run_key(event.source, event.event_id, spec.name)
    values: Item = {
        **run_identity(event, spec.name, expires_at=event.received_at + RUN_LIFE),
        "status": str(Status.DEFERRED),
        "message_id": message.id,
        "next_attempt_at": to_ms(deferral.due),
        "last_at": to_ms(now),
        "last_error": cut(deferral.why),
        "waits_for": deferral.waits_for,
        "reservations": dict(deferral.reservations),
        **due_entry(key, look, kind=kind),
        **({"parked": True} if parked else {}),
        **({"place": deferral.place} if deferral.place else {}),
        **({} if deferral.counts else {"resumed_at": to_ms(now)}),
    }
    gone = ("lease_id", "claimed_until", "resends", "held", "error_line", "error_class")
    gone = (*gone, *(() if parked else ("parked",)))
    return Change(set=values, default={"first_at": to_ms(now)}, add={"generation": 1}, remove=gone)


def resume(
    table: Table,
    run: Run,
    *,
    unchanged: Condition,
    now: datetime,
    values: Mapping[str, int] | None = None,
) -> None:
    """Makes a parked run pending; the caller then sends it with its current generation.

    The generation stays, because the queue has no message of a parked run that has to be replaced.
    After a crash between the two steps the reconciler sends the run like any overdue one.

    Raises:
        ConditionFailed: the run was changed since it was read.
        Unavailable: the table failed; the change may have been made.
    """
    # The last error of a run that waited for a resumption is the pause, which is over.
    ended = ("last_error",) if run.waits_for in RESUMPTIONS else ()
    change = Change(
        set={
            "status": str(Status.PENDING),
            "last_at": to_ms(now),
            **due_entry(key_of_run(run), overdue_at(now)),
            **(values or {}),
        },
        remove=("parked", "next_attempt_at", "lease_id", "waits_for", *ended),
    )
    transition(table, key_of_run(run), change, when=unchanged)


def wake(table: Table, run: Run, *, unchanged: Condition, now: datetime) -> Run:
    """Makes a held run pending under its next generation; the caller then sends it.

    A person may still decide its request: the next attempt reads the request. The wait does not
    count towards the run's maximum age.

    Raises:
        ConditionFailed: the run was changed since it was read.
        Unavailable: the table failed; the change may have been made.
    """
    change = Change(
        set={
            "status": str(Status.PENDING),
            "generation": run.generation + 1,
            "resumed_at": to_ms(now),
            "last_at": to_ms(now),
            **due_entry(key_of_run(run), overdue_at(now)),
        },
        remove=("held", "lease_id", "claimed_until", "next_attempt_at", "resends"),
    )
    return run_from(transition(table, key_of_run(run), change, when=unchanged))
