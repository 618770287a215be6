"""Erases the payload of an event and keeps its ledger: identity, runs, effects.

    audit ──► event row: erased_at, without body and headers ──► conflicts ──► objects ──► texts

A row that is marked has no payload for any reader, also while its object still exists; the row
names the object until it is deleted, so a repeated call finishes what a crash interrupted. The
fingerprint stays: a later delivery is a duplicate or a conflict, as before, and stores no payload.

All objects with the event's prefix are deleted. A delivery uploads its body before it writes a row,
so that some objects have none: of a delivery whose write failed and that was sent again with other
volatile fields, or of the slower of two at once. A delivery that read the event's row before the
mark may store its payload after it. The erasure tells how long: the event's row has the time of the
first deliveries, and a conflict writes its row before it reads the event's and stores its payload.

A run that a worker takes after the mark ends as skipped. An attempt that has read its payload goes
on to its end: the erasure names its run as unfinished, or has read the runs before its lease; its
worker then stores no error text.
"""

from collections.abc import Collection, Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final

from webhook_inbox.domain.audit import Actor, AuditedAction, EventName
from webhook_inbox.domain.conditions import Condition, Equals, Present
from webhook_inbox.domain.errors import ConditionFailed
from webhook_inbox.domain.model import BATCH, RequestState, Run, Status
from webhook_inbox.domain.personal import ERASED
from webhook_inbox.domain.ports import Blobs, Change, Item, Key, Randomness, Table
from webhook_inbox.domain.timestamps import from_ms, to_ms
from webhook_inbox.ledger import audit, payloads
from webhook_inbox.ledger.queries import Received
from webhook_inbox.ledger.schema import (
    APPROVAL_PREFIX,
    EFFECT_PREFIX,
    RUN_PREFIX,
    attempt_to,
    conflict_key,
    event_key,
    event_pk,
    hash_in,
    identify,
    key_of_run,
    live,
    run_from,
)
from webhook_inbox.ledger.settle import as_seen

# A worker is about to write the texts of the first; the second shows its text to an approver.
IN_PROGRESS: Final = frozenset({Status.PROCESSING, Status.HELD})
# The longest time from the receipt of a delivery, or of an item of a batch that is split late, to
# the last effect of its invocation, with a margin for clocks that differ and for late writes.
DELIVERY_LIFE: Final = timedelta(minutes=5)


@dataclass(frozen=True, slots=True)
class ErasureRequest:
    """A request to erase one event's payload."""

    source: str
    event_id: str
    by: Actor
    reason: str
    now: datetime


@dataclass(frozen=True, slots=True)
class Erasure:
    """The result of an erasure.

    Attributes:
        erased_at: when the payload was erased first.
        unfinished: the handlers whose runs are in progress or held. The error texts of these runs
            are still stored; the same call erases them later.
        arriving_until: when the last delivery ends that may still store its payload; None if there
            is none. The same call erases it after that time.
        batch: the id of the batch that still has the text of this event, its item; "" for none.
    """

    erased_at: datetime
    unfinished: tuple[str, ...]
    arriving_until: datetime | None = None
    batch: str = ""


def erase(
    table: Table, blobs: Blobs, randomness: Randomness, request: ErasureRequest
) -> Erasure | None:
    """Erases a payload, those of its conflicts, and the error texts of its runs and effects.

    Also of an event that has expired, as long as anything of it is stored. Returns None if nothing
    is, or if the event was replaced meanwhile.

    Raises:
        Unavailable: storage failed; the payload may be erased, and the call can be repeated.
    """
    event, now = EventName(request.source, request.event_id), request.now
    if not has_remains(table, blobs, event):
        return None
    recorded = audit.record(
        table,
        randomness,
        action=AuditedAction.ERASE,
        by=request.by,
        reason=request.reason,
        request={"source": event.source},
        event=event,
        now=now,
    )
    # Also an expired row, which DynamoDB deletes days late.
    row = table.get(event_key(*event))
    erased = remove(table, blobs, event, row, now=now)
    if erased is None:
        recorded.conclude({"changed": 1})
        return None
    unfinished = {"unfinished": len(erased.unfinished)} if erased.unfinished else {}
    recorded.conclude({"erased": 1, **unfinished})
    return replace(erased, batch=_batch_with(table, blobs, row or {}, event))


def has_remains(table: Table, blobs: Blobs, event: EventName) -> bool:
    """Tells whether anything of an event is stored that an erasure deletes, or has emptied.

    Raises:
        Unavailable: storage failed.
    """
    kinds = ("event", RUN_PREFIX, EFFECT_PREFIX, APPROVAL_PREFIX)
    return (
        any(row["sk"].startswith(kinds) for row in table.query(event_pk(*event)))
        or any(table.query(conflict_key(*event, "").pk))
        or bool(blobs.list_keys(payloads.event_prefix(*event)))
    )


def erase_of_tenant(
    table: Table, blobs: Blobs, event: Received, *, now: datetime
) -> Erasure | None:
    """Erases what is left of one of a tenant's payloads, without an audit row of its own.

    Returns None if nothing is left and no delivery may still store a payload: it was erased before.
    Also if it has expired, or was replaced by another tenant's event.

    Raises:
        Unavailable: storage failed; the payload may be erased, and the call can be repeated.
    """
    name = EventName(event.source, event.event_id)
    row = live(table.get(event_key(*name)), now)
    if row is None or row.get("tenant", "") != event.tenant:
        return None
    if not _is_left(table, blobs, row, now):
        return None
    erased = remove(table, blobs, name, row, now=now)
    return erased and replace(erased, batch=_batch_with(table, blobs, row, name))


def _is_left(table: Table, blobs: Blobs, row: Item, now: datetime) -> bool:
    """Tells whether anything of an event is left to erase, or may still be stored."""
    event = EventName(*identify(row["pk"]))
    rows = (row, *table.query(conflict_key(*event, "").pk))
    if any("erased_at" not in each or "body_ref" in each for each in rows):
        return True
    if _delivery_end(rows, now) is not None:
        return True
    own = list(table.query(row["pk"]))
    asked = (each for each in own if each["sk"].startswith(APPROVAL_PREFIX))
    if any(each["arguments"] != ERASED for each in asked):
        return True
    effects = (each for each in own if each["sk"].startswith(EFFECT_PREFIX))
    runs = [run_from(each) for each in own if each["sk"].startswith(RUN_PREFIX)]
    texts = {text for run in runs for text in (run.last_error, *(a.error for a in run.attempts))}
    texts |= {_whole(table, each).get("error", "") for each in effects}
    return not texts <= {"", ERASED} or bool(blobs.list_keys(payloads.event_prefix(*event)))


def _batch_with(table: Table, blobs: Blobs, row: Item, event: EventName) -> str:
    """Returns the id of the batch that has an event as its item, "" if it has no payload left."""
    if "batch" not in row:
        return ""
    batch = EventName(event.source, f"{BATCH}:{hash_in(row, 'batch')}")
    # Its object may outlive its row.
    stored = "body" in (table.get(event_key(*batch)) or {})
    return batch.event_id if stored or blobs.list_keys(payloads.event_prefix(*batch)) else ""


def remove(
    table: Table, blobs: Blobs, event: EventName, row: Item | None, *, now: datetime
) -> Erasure | None:
    """Erases the payload of an event, those of its conflicts, and texts that may quote them.

    `row` is the event's row as it was read, None without one. Returns None if the event was
    replaced meanwhile.

    Raises:
        Unavailable: storage failed; the payload may be erased, and the call can be repeated.
    """
    try:
        marked = [_mark(table, row, now)] if row else []
    except ConditionFailed:
        return None
    for conflict in table.query(conflict_key(*event, "").pk):
        # One that expires, or that another delivery replaces, has no payload or is in progress.
        with suppress(ConditionFailed):
            marked.append(_mark(table, conflict, now))
    younger = _delete_objects(blobs, event, before=_end_of(row, now))
    for each in marked:
        _drop_reference(table, each)
    arriving_until = now + DELIVERY_LIFE if younger else _delivery_end(marked, now)
    erased_at = from_ms(marked[0]["erased_at"]) if row else now
    return Erasure(erased_at, _forget_texts(table, event), arriving_until)


def _delivery_end(rows: Iterable[Item], now: datetime) -> datetime | None:
    """Returns when the last delivery ends that may store a payload after these rows were marked.

    It is a first delivery of the event, while another one writes the event's row, or a conflict
    that read the event's row before the mark; one that read it later is `unstored`.
    """
    own = (row["received_at"] for row in rows if "unstored" not in row)
    end = from_ms(max(own, default=0)) + DELIVERY_LIFE
    return end if end > now else None


def _end_of(row: Item | None, now: datetime) -> int:
    """Returns the time in ms from which on a delivery may be one of another event with this id.

    Deliveries that were received so long ago that they have ended have no event but this one.
    """
    expires_at: int = row["expires_at"] if row else 0
    return max(expires_at * 1000, to_ms(now - DELIVERY_LIFE))


def _mark(table: Table, row: Item, now: datetime) -> Item:
    """Marks a row, and removes its payload but the reference to an object; returns the row."""
    mark = Change(set={"headers": {}}, default={"erased_at": to_ms(now)}, remove=("body",))
    return table.update(Key(row["pk"], row["sk"]), mark, when=_same(row))


def _drop_reference(table: Table, row: Item) -> None:
    if "body_ref" in row:
        with suppress(ConditionFailed):
            key = Key(row["pk"], row["sk"])
            table.update(key, Change(remove=("body_ref",)), when=_same(row))


def _same(row: Item) -> Condition:
    return Equals("received_at", row["received_at"])


def _delete_objects(blobs: Blobs, event: EventName, *, before: int) -> bool:
    """Deletes the objects of deliveries received before a time in ms; tells of younger ones."""
    keys = blobs.list_keys(payloads.event_prefix(*event))
    old = [key for key in keys if payloads.received_ms(key) < before]
    for key in old:
        blobs.delete(key)
    return len(old) < len(keys)


def _forget_texts(table: Table, event: EventName) -> tuple[str, ...]:
    """Erases what handlers wrote about a payload; returns the handlers that are not at rest."""
    rows = list(table.query(event_pk(*event)))
    runs = (run_from(row) for row in rows if row["sk"].startswith(RUN_PREFIX))
    unfinished = tuple(_forget_errors(table, runs))
    shown = tuple(f"{EFFECT_PREFIX}{handler}#" for handler in unfinished)
    for row in rows:
        if row["sk"].startswith(EFFECT_PREFIX) and not row["sk"].startswith(shown):
            _forget_effect(table, _whole(table, row))
    _forget_arguments(table, rows, unfinished)
    return unfinished


def _whole(table: Table, effect: Item) -> Item:
    """Returns an effect's row, or the shared row of its business key."""
    return table.get(Key(effect["shared"], "effect")) or {} if "shared" in effect else effect


def _forget_effect(table: Table, effect: Item) -> None:
    """Erases the error text of an effect; that of a shared one may be of another event's run."""
    if effect.get("error", ERASED) != ERASED:
        key = Key(effect["pk"], effect["sk"])
        # It is gone if the effect was committed or begun again.
        with suppress(ConditionFailed):
            table.update(key, Change(set={"error": ERASED}), when=Present("error"))


def _forget_arguments(table: Table, rows: Iterable[Item], unfinished: Collection[str]) -> None:
    """Erases the arguments in requests for approval, but those that people still decide."""
    for row in rows:
        if not row["sk"].startswith(APPROVAL_PREFIX) or row["arguments"] == ERASED:
            continue
        if row["state"] != RequestState.OPEN or row["handler"] not in unfinished:
            key = Key(row["pk"], row["sk"])
            table.update(key, Change(set={"arguments": ERASED}), when=Present("pk"))


def _forget_errors(table: Table, runs: Iterable[Run]) -> Iterable[str]:
    """Erases the error texts of handlers; yields the runs that are not at rest."""
    for run in runs:
        if run.status in IN_PROGRESS or not _forget(table, run):
            yield run.handler


def _forget(table: Table, run: Run) -> bool:
    attempts = [
        attempt_to(replace(each, error=ERASED if each.error else "")) for each in run.attempts
    ]
    error = {"last_error": ERASED} if run.last_error else {}
    if not error and not any(each.error for each in run.attempts):
        return True
    change = Change(set={"attempts": attempts, **error})
    try:
        table.update(key_of_run(run), change, when=as_seen(run))
    except ConditionFailed:
        return False
    return True
