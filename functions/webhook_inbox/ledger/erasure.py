"""Erases the payload of an event and keeps its ledger: identity, runs, effects.

    audit ──► event row: erased_at, without body and headers ──► blob ──► conflicts ──► error texts

A row that is marked has no payload for any reader, also while its blob still exists; the row names
the blob until it is deleted, so a repeated call finishes what a crash interrupted. The fingerprint
stays: a later delivery is a duplicate or a conflict, as before. A run that a worker takes after the
mark ends as skipped. An attempt that has read its payload goes on to its end: the erasure names its
run as unfinished, or has read the runs before its lease; its worker then stores no error text.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from webhook_inbox.domain.conditions import Equals, Present
from webhook_inbox.domain.errors import ConditionFailed
from webhook_inbox.domain.model import RequestState, Run, Status
from webhook_inbox.domain.personal import ERASED
from webhook_inbox.domain.ports import Blobs, Change, Item, Key, Randomness, Table
from webhook_inbox.domain.timestamps import from_ms, to_ms
from webhook_inbox.ledger import audit
from webhook_inbox.ledger.audit import Actor, AuditedAction, EventName
from webhook_inbox.ledger.queries import Received
from webhook_inbox.ledger.schema import (
    APPROVAL_PREFIX,
    RUN_PREFIX,
    attempt_to,
    conflict_key,
    event_key,
    event_pk,
    identify,
    key_of_run,
    live,
    run_from,
)
from webhook_inbox.ledger.settle import as_seen

# A worker is about to write the texts of the first; the second shows its text to an approver.
IN_PROGRESS: Final = frozenset({Status.PROCESSING, Status.HELD})


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
    """

    erased_at: datetime
    unfinished: tuple[str, ...]


def erase(
    table: Table, blobs: Blobs, randomness: Randomness, request: ErasureRequest
) -> Erasure | None:
    """Erases a payload, those of its conflicts, and the error texts of its runs.

    Returns None if the event is unknown, has expired, or was replaced meanwhile.

    Raises:
        Unavailable: storage failed; the payload may be erased, and the call can be repeated.
    """
    source, event_id, now = request.source, request.event_id, request.now
    row = live(table.get(event_key(source, event_id)), now)
    if row is None:
        return None
    recorded = audit.record(
        table,
        randomness,
        action=AuditedAction.ERASE,
        by=request.by,
        reason=request.reason,
        request={"source": source},
        event=EventName(source, event_id),
        now=now,
    )
    erased = remove(table, blobs, row, now=now)
    if erased is None:
        recorded.conclude({"changed": 1})
    else:
        unfinished = {"unfinished": len(erased.unfinished)} if erased.unfinished else {}
        recorded.conclude({"erased": 1, **unfinished})
    return erased


def erase_of_tenant(
    table: Table, blobs: Blobs, event: Received, *, now: datetime
) -> Erasure | None:
    """Erases what is left of one of a tenant's payloads, without an audit row of its own.

    Returns None if nothing is left: it has expired, was replaced by another tenant's event, or was
    erased before.

    Raises:
        Unavailable: storage failed; the payload may be erased, and the call can be repeated.
    """
    row = live(table.get(event_key(event.source, event.event_id)), now)
    if row is None or row.get("tenant", "") != event.tenant or not _is_left(table, row):
        return None
    return remove(table, blobs, row, now=now)


def _is_left(table: Table, row: Item) -> bool:
    """Tells whether anything of an event is left to erase."""
    source, event_id = identify(row["pk"])
    rows = (row, *table.query(conflict_key(source, event_id, "").pk))
    if any("erased_at" not in each or "body_ref" in each for each in rows):
        return True
    asked = table.query(row["pk"], sk_prefix=APPROVAL_PREFIX)
    if any(each["arguments"] != ERASED for each in asked):
        return True
    runs = map(run_from, table.query(row["pk"], sk_prefix=RUN_PREFIX))
    texts = {text for run in runs for text in (run.last_error, *(a.error for a in run.attempts))}
    return not texts <= {"", ERASED}


def remove(table: Table, blobs: Blobs, row: Item, *, now: datetime) -> Erasure | None:
    """Erases the payload of an event, those of its conflicts, and texts that may quote them.

    Returns None if the event was replaced meanwhile.

    Raises:
        Unavailable: storage failed; the payload may be erased, and the call can be repeated.
    """
    try:
        erased_at = _empty(table, blobs, row, now)
        source, event_id = identify(row["pk"])
        for conflict in table.query(conflict_key(source, event_id, "").pk):
            _empty(table, blobs, conflict, now)
    except ConditionFailed:
        return None
    partition = event_pk(source, event_id)
    runs = map(run_from, table.query(partition, sk_prefix=RUN_PREFIX))
    unfinished = tuple(_forget_errors(table, runs))
    _forget_arguments(table, partition, unfinished)
    return Erasure(erased_at, unfinished)


def _empty(table: Table, blobs: Blobs, row: Item, now: datetime) -> datetime:
    """Marks a row, and removes its payload; returns when it was marked first."""
    key, same = Key(row["pk"], row["sk"]), Equals("received_at", row["received_at"])
    mark = Change(set={"headers": {}}, default={"erased_at": to_ms(now)}, remove=("body",))
    marked = table.update(key, mark, when=same)
    if "body_ref" in marked:
        blobs.delete(marked["body_ref"])
        table.update(key, Change(remove=("body_ref",)), when=same)
    return from_ms(marked["erased_at"])


def _forget_arguments(table: Table, partition: str, unfinished: Collection[str]) -> None:
    """Erases the arguments in requests for approval, but those that people still decide."""
    for row in table.query(partition, sk_prefix=APPROVAL_PREFIX):
        is_open = row["state"] == RequestState.OPEN and row["handler"] in unfinished
        if row["arguments"] != ERASED and not is_open:
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
