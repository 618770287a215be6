"""Letting a run wait that was not claimed: no attempt is begun, so none is spent.

The same messages may do so that may claim it, and as where a claimed run waits, the one that
carries the wait has the next generation.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from webhook_inbox.domain.conditions import Condition
from webhook_inbox.domain.errors import ConditionFailed
from webhook_inbox.domain.manifest import HandlerSpec
from webhook_inbox.domain.model import Run, Status, StoredEvent, WaitStrategy
from webhook_inbox.domain.ports import Change, Item, Message, Table
from webhook_inbox.domain.timestamps import to_ms, to_seconds
from webhook_inbox.ledger.deadlines import overdue_at
from webhook_inbox.ledger.lease import NotClaimable, claimable, in_order, refusal
from webhook_inbox.ledger.schema import RUN_LIFE, carries, due_bucket, run_from, run_key
from webhook_inbox.ledger.settle import cut


@dataclass(frozen=True, slots=True)
class Deferral:
    """What a run waits for.

    Attributes:
        due: until when.
        wait: what carries it over the wait.
        waits_for: what it waits for, like "destination crm" or "resumption".
        why: the same in a sentence.
        reservations: when it may call a destination, in ms, by destination.
        counts: whether the wait counts towards the run's maximum age.
    """

    due: datetime
    wait: WaitStrategy
    waits_for: str
    why: str
    reservations: Mapping[str, int] = field(default_factory=dict)
    counts: bool = True


def defer(
    table: Table,
    *,
    event: StoredEvent,
    spec: HandlerSpec,
    generation: int,
    message: Message,
    postponement: Deferral,
    now: datetime,
) -> Run:
    """Lets a run wait and returns it as it is then, with the generation of the next message.

    Raises:
        NotClaimable: the message has no say any more.
        Unavailable: the table failed; it may wait already.
    """
    key = run_key(event.source, event.event_id, spec.name)
    change = _change(event, spec, message, postponement, now)
    when = claimable(generation, message, spec.max_attempts, now)
    try:
        return run_from(table.update(key, change, when=when))
    except ConditionFailed as error:
        ours = error.old is not None and error.old.get("generation") == generation + 1
        if error.old is not None and ours and carries(error.old, change.set):
            # An earlier try of this call succeeded and its answer was lost.
            return run_from(error.old)
        run = run_from(error.old) if error.old else None
        raise NotClaimable(refusal(run, generation, message, now), run) from error


def _change(
    event: StoredEvent,
    spec: HandlerSpec,
    message: Message,
    postponement: Deferral,
    now: datetime,
) -> Change:
    parked = postponement.wait is WaitStrategy.PARKED
    look = postponement.due if parked else overdue_at(postponement.due)
    values: Item = {
        "source": event.source,
        "event_id": event.event_id,
        "handler": spec.name,
        "type": event.type,
        "status": str(Status.DEFERRED),
        "message_id": message.id,
        "next_attempt_at": to_ms(postponement.due),
        "last_at": to_ms(now),
        "last_error": cut(postponement.why),
        "waits_for": postponement.waits_for,
        "reservations": dict(postponement.reservations),
        "due_bucket": due_bucket(run_key(event.source, event.event_id, spec.name)),
        "due_at": to_ms(look),
        "expires_at": to_seconds(event.received_at + RUN_LIFE),
        **in_order(event, spec.name),
        **({"parked": True} if parked else {}),
        **({} if postponement.counts else {"resumed_at": to_ms(now)}),
    }
    gone = ("lease_id", "claimed_until", "resends", "held", *(() if parked else ("parked",)))
    return Change(set=values, default={"first_at": to_ms(now)}, add={"generation": 1}, remove=gone)


def resume(
    table: Table,
    run: Run,
    *,
    unchanged: Condition,
    now: datetime,
    values: Mapping[str, int] | None = None,
) -> None:
    """Makes a parked run pending, with these values; send it then, with the generation that it has.

    The generation stays: nothing of a parked run waits in the queue that would have to be replaced.
    After a crash between the two the reconciler sends it as it does any overdue run.

    Raises:
        ConditionFailed: it has changed since it was read.
        Unavailable: the table failed; the change may have been made.
    """
    change = Change(
        set={
            "status": str(Status.PENDING),
            "last_at": to_ms(now),
            "due_at": to_ms(overdue_at(now)),
            **(values or {}),
        },
        remove=("parked", "next_attempt_at", "lease_id", "waits_for"),
    )
    try:
        table.update(run_key(run.source, run.event_id, run.handler), change, when=unchanged)
    except ConditionFailed as error:
        # Our own: an earlier try of this call succeeded and its answer was lost.
        if not carries(error.old, change.set):
            raise
