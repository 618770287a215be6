"""The ledger's table: keys, attributes, lifetimes. Every kind of row is listed here.

    pk                            sk                       row, and the module that writes it
    event#{source}#{id}           event                    event: ingest/deduplication
    same                          run#{handler}            run: ledger/lease, settle, deferral
    same                          effect#{handler}#{name}  effect: handlers/effects/journal
    same                          wait#{handler}#{name}    job: handlers/completions/journal
    same                          approval#{handler}#{of}  request: handlers/approvals/request_row
    same                          action#{time}#{token}    action on the event: ledger/audit
    effect#{name}#{key}           effect                   shared effect: handlers/effects/journal
    ordering_key#{handler}#{key}  state#{kind}             key's state: handlers/ordering/key_state
    same                          waiter#{number}#{id}     early run: handlers/ordering/waiters
    same                          line                     last number of the line: queue/line
    same                          line#{number}            waiting serial run: queue/line
    destination#{name}            breaker                  circuit: destinations/*circuit*
    same                          limit                    next slots: destinations/rate_limiter
    control                       handler#{name}           paused handler: ledger/pauses
    same                          tenant#{name}            paused tenant: ledger/pauses
    guard#{source}#{hash}         guard                    accepted content: ingest/deduplication
    conflict#{source}#{id}        {fingerprint}            other content: ingest/deduplication
    rejected#{source}             {time}#{hash}            rejected delivery: ingest/rejected
    rejected-count#{source}       {minute}                 stored ones, by share: ingest/rejected
    ignored#{source}              places#{day}             types with a count: ingest/ignored
    same                          type#{day}#{type}        count of a type: ingest/ignored
    same                          rest#{day}               count of the others: ingest/ignored
    enrolment#{source}            enrolment                open enrolment: ingest/enrolment
    audit#{day}                   {time}#{token}           operator action: ledger/audit
    selection#{id}                head                     runs chosen by filters: replay/selections
    same                          runs#{token}             list of its runs: replay/selections
    reconciler                    cursors                  events read: reconciler/received
    same                          sweeps                   last DLQ sweep: reconciler/reconciler
    same                          retention                payloads erased: reconciler/retention
    due_index                     handler#{name}           listed handler: ledger/due_handlers
    smoke                         {token}                  smoke test under way: client/health/smoke

A run's attributes are those of `domain.model.Run`, plus `due_bucket` and `due_at`. The reconciler,
replay and approvals also update runs. An effect with a business key has a reference in its event's
partition. An `{id}` or ordering `{key}` over 512 bytes is replaced by its hash.

Index `by_received`: events by `received_bucket` (hour#shard) and `received_at`.
Index `by_due`: runs by `due_bucket` (kind#handler#shard) and `due_at`, the time the reconciler
reads them next. The kind is "wake" for a run that waits without a message (parked, held), "watch"
for one whose message is expected, or that is dead.
A dead run's `due_at` is its end plus `DEAD_FROM`: dead runs follow all others, oldest event first.

Times are epoch milliseconds; `expires_at` (DynamoDB's TTL) is epoch seconds. DynamoDB deletes
expired rows days late, so an expired row counts as absent.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields
from datetime import datetime, timedelta
from hashlib import sha256
from typing import Any, Final

from webhook_inbox.domain.conditions import Absent, Condition, Less, either
from webhook_inbox.domain.errors import ConditionFailed
from webhook_inbox.domain.model import Attempt, Run, Status, StoredEvent, TypeDoubt
from webhook_inbox.domain.ports import Change, Item, Key, Table
from webhook_inbox.domain.timestamps import from_ms, from_seconds, to_ms, to_seconds

BY_RECEIVED: Final = "by_received"
BY_DUE: Final = "by_due"
# DynamoDB takes 1,000 writes a second per index key: 4,000 events a second.
RECEIVED_SHARDS: Final = 4
# The kinds of entries of the due index: without a message, and with one.
WAKE: Final = "wake"
WATCH: Final = "watch"
DUE_KINDS: Final = (WAKE, WATCH)
# The shards of one handler and kind. A partition of an index takes 1,000 write units a second, and
# a throttled index throttles its table. A new table takes 4,000, so more shards would not help.
DUE_SHARDS: Final = 4
# Added to the `due_at` of a dead run, in ms. A pass of the reconciler never reads dead runs, and a
# search for dead runs reads no others.
DEAD_FROM: Final = 10**14

# Runs outlive events, and effects outlive runs, so no reference dangles.
EVENT_LIFE: Final = timedelta(days=35)
RUN_LIFE: Final = EVENT_LIFE + timedelta(days=7)
EFFECT_LIFE: Final = EVENT_LIFE + timedelta(days=14)
# DynamoDB deletes expired rows days late; a body in S3 must outlive every row that refers to it.
BODY_LIFE: Final = EVENT_LIFE + timedelta(days=14)
# A waiting run raises an alarm this long before its event expires (G1).
EXPIRY_WARNING: Final = timedelta(days=7)
# The subject of the approval request of a run that is held because of its event's body.
IDENTICAL_BODY: Final = "identical-body"
# The subjects under which ingest holds the runs of an event.
EVENT_HOLDS: Final = frozenset({IDENTICAL_BODY, *map(str, TypeDoubt)})
# A DynamoDB key has at most 2048 bytes; a longer id is replaced by its hash.
ID_LIMIT: Final = 512

RUN_PREFIX: Final = "run#"
EFFECT_PREFIX: Final = "effect#"
WAIT_PREFIX: Final = "wait#"
APPROVAL_PREFIX: Final = "approval#"
ACTION_PREFIX: Final = "action#"
_RUN_TIMES: Final = (
    "claimed_until",
    "claimed_at",
    "next_attempt_at",
    "first_at",
    "last_at",
    "done_at",
    "dead_at",
    "unknown_since",
    "resumed_at",
)
_RUN_PLAIN: Final = tuple(
    field.name
    for field in fields(Run)
    if field.name
    not in {*_RUN_TIMES, "status", "attempts", "replays", "expires_at", "in_due_index"}
)


# An event's hashes are hex in the record, and bytes in its row: half as long.
_HASHES: Final = ("fingerprint", "signature_hash", "guard", "batch")
_OPTIONAL: Final = (
    "verified_with",
    "request_id",
    "agent",
    "tenant",
    "identical_to",
    "held",
    "dropped",
    "doubt",
)


def dedupe_key(event_id: str) -> str:
    """Returns the id that an event is stored under: its SHA-256 if it is over 512 bytes."""
    encoded = event_id.encode()
    return event_id if len(encoded) <= ID_LIMIT else f"sha256:{sha256(encoded).hexdigest()}"


def event_pk(source: str, event_id: str) -> str:
    """Returns the partition of an event, its runs and its effects."""
    return f"event#{source}#{event_id}"


def event_key(source: str, event_id: str) -> Key:
    """Returns an event row's key."""
    return Key(event_pk(source, event_id), "event")


def run_key(source: str, event_id: str, handler: str) -> Key:
    """Returns a run row's key."""
    return Key(event_pk(source, event_id), RUN_PREFIX + handler)


def key_of_run(run: Run) -> Key:
    """Returns the key of a run's row."""
    return run_key(run.source, run.event_id, run.handler)


def effect_key(source: str, event_id: str, handler: str, name: str) -> Key:
    """Returns the key of one event's effect."""
    return Key(event_pk(source, event_id), f"{EFFECT_PREFIX}{handler}#{name}")


def wait_key(source: str, event_id: str, handler: str, name: str) -> Key:
    """Returns the key of a job that a run waits for."""
    return Key(event_pk(source, event_id), f"{WAIT_PREFIX}{handler}#{name}")


def shared_effect_key(name: str, business_key: str) -> Key:
    """Returns the key of an effect that events share by a business key."""
    return Key(f"{EFFECT_PREFIX}{name}#{business_key}", "effect")


def guard_key(source: str, content_hash: str) -> Key:
    """Returns the key of the row that guards signed content."""
    return Key(f"guard#{source}#{content_hash}", "guard")


def conflict_key(source: str, event_id: str, fingerprint: str) -> Key:
    """Returns the key of a conflict: a known id with other content."""
    return Key(f"conflict#{source}#{event_id}", fingerprint)


def identify(pk: str) -> tuple[str, str]:
    """Returns (source, event id) of an event's partition; ids may contain '#', sources not."""
    _, source, event_id = pk.split("#", 2)
    return source, event_id


def received_bucket(moment: datetime, event_id: str) -> str:
    """Returns the `by_received` partition of an event: its hour, and a shard by its id."""
    return f"{moment:%Y-%m-%dT%H}#{_shard(event_id, RECEIVED_SHARDS)}"


def received_buckets(
    low: datetime,
    high: datetime,
    *,
    newest_first: bool = True,
    shards: Iterable[int] = range(RECEIVED_SHARDS),
) -> Iterator[str]:
    """Yields every `by_received` partition with times in [low, high], hour by hour."""
    first = low.replace(minute=0, second=0, microsecond=0)
    last = high.replace(minute=0, second=0, microsecond=0)
    hours = [first + timedelta(hours=n) for n in range((last - first) // timedelta(hours=1) + 1)]
    for hour in reversed(hours) if newest_first else hours:
        for shard in shards:
            yield f"{hour:%Y-%m-%dT%H}#{shard}"


def due_bucket(key: Key, kind: str = WATCH) -> str:
    """Returns the `by_due` partition of a run."""
    shard = _shard("".join(key), DUE_SHARDS)
    return f"{kind}#{key.sk.removeprefix(RUN_PREFIX)}#{shard}"


def due_buckets(handler: str, kinds: Iterable[str] = DUE_KINDS) -> Iterator[str]:
    """Yields the `by_due` partitions of a handler."""
    for kind in kinds:
        for shard in range(DUE_SHARDS):
            yield f"{kind}#{handler}#{shard}"


def due_entry(key: Key, at: datetime, *, kind: str = WATCH) -> Item:
    """Returns the attributes that list a run in the `by_due` index."""
    return {"due_bucket": due_bucket(key, kind), "due_at": to_ms(at)}


def dead_entry(key: Key, end: datetime) -> Item:
    """Returns the attributes that list a dead run in the `by_due` index, behind all open runs."""
    return {"due_bucket": due_bucket(key), "due_at": dead_due_at(end)}


def dead_due_at(end: datetime) -> int:
    """Returns the `due_at` of a dead run whose row expires at this time."""
    return DEAD_FROM + to_ms(end)


def run_identity(of: StoredEvent | Run, handler: str, *, expires_at: datetime) -> Item:
    """Returns the attributes that every run row has from its first write on."""
    key = of.ordering_key if isinstance(of, Run) else of.ordering_keys.get(handler)
    return {
        "source": of.source,
        "event_id": of.event_id,
        "handler": handler,
        "type": of.type,
        "expires_at": to_seconds(expires_at),
        **({"ordering_key": key} if key else {}),
        **({"tenant": of.tenant} if of.tenant else {}),
    }


def held_run(event: StoredEvent, handler: str) -> Item:
    """Returns the attributes of a held event's run before a decision; a function of the event."""
    key, at = run_key(event.source, event.event_id, handler), to_ms(event.received_at)
    reason = hold_reason(event)
    return {
        **run_identity(event, handler, expires_at=event.received_at + RUN_LIFE),
        **due_entry(key, event.received_at + EVENT_LIFE - EXPIRY_WARNING, kind=WAKE),
        "status": str(Status.HELD),
        "first_at": at,
        "last_at": at,
        "last_error": reason,
        "held": {
            "subject": event.doubt or IDENTICAL_BODY,
            "reason": reason,
            "shows": "",
            "fingerprint": event.guard,
            "at": at,
            "identical_to": event.identical_to,
        },
    }


def hold_reason(event: StoredEvent) -> str:
    """Returns why the runs of a held event begin held."""
    match event.doubt:
        case TypeDoubt.UNREADABLE:
            return "its type cannot be read from its signed body, so any handler may be meant"
        case TypeDoubt.CONTRADICTED:
            return "an unsigned header contradicts its signed body, so any handler may be meant"
        case _:
            return (
                f"its body was received before as {event.identical_to}: the provider sent a second"
                " event, or a captured delivery was sent again"
            )


def live(item: Item | None, now: datetime) -> Item | None:
    """Returns the row, None if it has expired."""
    if item is None or item.get("expires_at", 1 << 62) <= to_seconds(now):
        return None
    return item


def carries(row: Item | None, values: Mapping[str, Any]) -> bool:
    """Tells whether a row has all these values."""
    return row is not None and all(row.get(name) == value for name, value in values.items())


def absent(now: datetime) -> Condition:
    """Returns the condition that a row does not exist or has expired."""
    return either(Absent("pk"), Less("expires_at", to_seconds(now) + 1))


def run_from(item: Item) -> Run:
    """Reads a run row."""
    values: dict[str, Any] = {name: item[name] for name in _RUN_PLAIN if name in item}
    values.update((name, from_ms(item[name])) for name in _RUN_TIMES if name in item)
    return Run(
        **values,
        status=Status(item["status"]),
        attempts=tuple(_attempt_from(entry) for entry in item.get("attempts", ())),
        replays=tuple(item.get("replays", ())),
        expires_at=from_seconds(item["expires_at"]) if "expires_at" in item else None,
        in_due_index="due_bucket" in item,
    )


def attempt_to(attempt: Attempt) -> dict[str, Any]:
    """Returns one history entry as an attribute value."""
    entry: dict[str, Any] = {
        "number": attempt.number,
        "started_at": to_ms(attempt.started_at),
        "ended_at": to_ms(attempt.ended_at),
        "outcome": attempt.outcome,
    }
    return entry | {k: v for k in ("error", "worker", "code_version") if (v := getattr(attempt, k))}


def event_to(event: StoredEvent) -> Item:
    """Returns an event's row without its body."""
    key = event_key(event.source, event.event_id)
    item: Item = {
        "pk": key.pk,
        "sk": key.sk,
        "type": event.type,
        "received_at": to_ms(event.received_at),
        "received_bucket": received_bucket(event.received_at, event.event_id),
        "expires_at": to_seconds(event.received_at + EVENT_LIFE),
        "headers": dict(event.headers),
        "runs": list(event.runs),
    }
    for name in _HASHES:
        if digest := getattr(event, name):
            item[name] = bytes.fromhex(digest)
    for name in _OPTIONAL:
        if value := getattr(event, name):
            item[name] = value
    if event.occurred_at is not None:
        item["occurred_at"] = to_ms(event.occurred_at)
    if event.ordering_keys:
        item["ordering_keys"] = dict(event.ordering_keys)
    return item


def event_from(item: Item, body: bytes) -> StoredEvent:
    """Reads an event row; the body is passed in, since it may be in S3."""
    source, event_id = identify(item["pk"])
    return StoredEvent(
        source=source,
        event_id=event_id,
        type=item["type"],
        received_at=from_ms(item["received_at"]),
        body=body,
        fingerprint=hash_in(item, "fingerprint"),
        headers=item["headers"],
        runs=tuple(item["runs"]),
        signature_hash=hash_in(item, "signature_hash"),
        verified_with=item.get("verified_with", 0),
        occurred_at=from_ms(item["occurred_at"]) if "occurred_at" in item else None,
        guard=hash_in(item, "guard"),
        batch=hash_in(item, "batch"),
        request_id=item.get("request_id", ""),
        agent=item.get("agent", ""),
        tenant=item.get("tenant", ""),
        ordering_keys=item.get("ordering_keys", {}),
        identical_to=item.get("identical_to", ""),
        doubt=item.get("doubt", ""),
        held=item.get("held", False),
        dropped=item.get("dropped", ""),
        erased_at=from_ms(item["erased_at"]) if "erased_at" in item else None,
    )


def hash_in(item: Item, name: str) -> str:
    """Returns a hash of an event's row in hex, "" if the row has none; the first rows have text."""
    found: bytes | str = item.get(name, "")
    return found if isinstance(found, str) else found.hex()


def _attempt_from(entry: Mapping[str, Any]) -> Attempt:
    times = {name: from_ms(entry[name]) for name in ("started_at", "ended_at")}
    return Attempt(**{**entry, **times})


def _shard(text: str, shards: int) -> int:
    return sha256(text.encode()).digest()[0] % shards


def transition(
    table: Table, key: Key, change: Change, *, when: Condition, own: Mapping[str, Any] | None = None
) -> Item:
    """Updates a row under a condition and returns the row after the update.

    If DynamoDB's answer is lost, the client sends the update again, and the condition then fails
    because of the first attempt. The row that the failure returns tells the two cases apart.

    Args:
        table: the ledger.
        key: the row's.
        change: the update.
        when: the condition.
        own: attributes with values that only this call writes; all that `change` sets by default.

    Raises:
        ConditionFailed: another writer changed the row first.
        Unavailable: the table failed; the update may have been made.
    """
    try:
        return table.update(key, change, when=when)
    except ConditionFailed as error:
        expected = change.set if own is None else own
        if error.old is not None and carries(error.old, expected):
            return error.old
        raise


def hold(table: Table, event: StoredEvent, handler: str) -> bool:
    """Writes the run of a held event, which is not sent; returns False if the run has a row.

    Raises:
        Unavailable: the table failed; the run may be held.
    """
    change = Change(set=held_run(event, handler))
    try:
        transition(table, run_key(event.source, event.event_id, handler), change, when=Absent("pk"))
    except ConditionFailed:
        return False
    return True
