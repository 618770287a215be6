"""How records lie in the ledger's table: keys, attributes, lifetimes.

    pk                            sk                    row
    event#{source}#{event_id}     event                 StoredEvent
    same                          run#{handler}         Run
    same                          effect#{handler}#{n}  effect
    same                          wait#{handler}#{n}    a job that a run waits for
    effect#{name}#{key}           effect                an effect that several events share
    ordering_key#{handler}#{ordering_key}     …                     what is kept in order: ordering/
    destination#{name}            …                     breaker and limit: destinations/
    control                       handler#{name}        a handler that is paused: controls.py
    guard#{source}#{hash}         guard                 content already seen, and under which id
    conflict#{source}#{event_id}  {fingerprint}         a known id with other content
    rejected#{source}             {time}#{hash}         a delivery kept without an event

Times are epoch milliseconds, `expires_at` (DynamoDB's TTL) epoch seconds. DynamoDB deletes
expired rows days late, so code treats an expired row as absent.
"""

from collections.abc import Iterator, Mapping
from dataclasses import fields
from datetime import datetime, timedelta
from hashlib import sha256
from typing import Any, Final

from webhook_inbox.domain.conditions import Absent, Condition, Less, either
from webhook_inbox.domain.model import Attempt, Run, Status, StoredEvent
from webhook_inbox.domain.ports import Item, Key
from webhook_inbox.domain.timestamps import from_ms, from_seconds, to_ms, to_seconds

BY_RECEIVED: Final = "by_received"
BY_DUE: Final = "by_due"
RECEIVED_SHARDS: Final = 8
DUE_SHARDS: Final = 16

# A run outlives its event, an effect outlives its run: what refers to a row never outlives it.
EVENT_LIFE: Final = timedelta(days=35)
RUN_LIFE: Final = EVENT_LIFE + timedelta(days=7)
EFFECT_LIFE: Final = EVENT_LIFE + timedelta(days=14)
# How long before its event's end a waiting run is alarmed (G1).
LAST_CALL: Final = timedelta(days=7)
# A DynamoDB key holds 2048 bytes; a longer id is replaced by its hash.
ID_LIMIT: Final = 512

RUN_PREFIX: Final = "run#"
EFFECT_PREFIX: Final = "effect#"
WAIT_PREFIX: Final = "wait#"
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


def dedupe_key(event_id: str) -> str:
    """Returns the id that an event is stored under: itself, or its SHA-256 if over 512 bytes."""
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


def effect_key(source: str, event_id: str, handler: str, name: str) -> Key:
    """Returns the key of one event's effect."""
    return Key(event_pk(source, event_id), f"{EFFECT_PREFIX}{handler}#{name}")


def wait_key(source: str, event_id: str, handler: str, name: str) -> Key:
    """Returns the key of what a run waits for."""
    return Key(event_pk(source, event_id), f"{WAIT_PREFIX}{handler}#{name}")


def shared_effect_key(name: str, business_key: str) -> Key:
    """Returns the key of an effect that several events share."""
    return Key(f"{EFFECT_PREFIX}{name}#{business_key}", "effect")


def guard_key(source: str, content_hash: str) -> Key:
    """Returns the key of the row that guards a signed content."""
    return Key(f"guard#{source}#{content_hash}", "guard")


def conflict_key(source: str, event_id: str, fingerprint: str) -> Key:
    """Returns the key of a conflict: an id under which other content came."""
    return Key(f"conflict#{source}#{event_id}", fingerprint)


def identify(pk: str) -> tuple[str, str]:
    """Returns (source, event id) of an event's partition; ids may contain '#', sources not."""
    _, source, event_id = pk.split("#", 2)
    return source, event_id


def received_bucket(moment: datetime, event_id: str) -> str:
    """Returns the `by_received` partition of an event: its hour, and a shard by its id."""
    return f"{moment:%Y-%m-%dT%H}#{_shard(event_id, RECEIVED_SHARDS)}"


def received_buckets(
    low: datetime, high: datetime, *, newest_first: bool = True, first_shard: int = 0
) -> Iterator[str]:
    """Yields every `by_received` partition that holds a time in [low, high], hour by hour."""
    first = low.replace(minute=0, second=0, microsecond=0)
    last = high.replace(minute=0, second=0, microsecond=0)
    hours = [first + timedelta(hours=n) for n in range((last - first) // timedelta(hours=1) + 1)]
    for hour in reversed(hours) if newest_first else hours:
        for place in range(RECEIVED_SHARDS):
            yield f"{hour:%Y-%m-%dT%H}#{(first_shard + place) % RECEIVED_SHARDS}"


def due_bucket(key: Key) -> str:
    """Returns the `by_due` partition of a run."""
    return str(_shard("".join(key), DUE_SHARDS))


def live(item: Item | None, now: datetime) -> Item | None:
    """Returns the row unless it has expired, in which case it counts as absent."""
    if item is None or item.get("expires_at", 1 << 62) <= to_seconds(now):
        return None
    return item


def carries(row: Item | None, values: Mapping[str, Any]) -> bool:
    """Tells whether a row holds what we wrote: an earlier try succeeded, its answer was lost."""
    return row is not None and all(row.get(name) == value for name, value in values.items())


def absent(now: datetime) -> Condition:
    """Returns the condition that a row is not there, or counts as absent like in `live`."""
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
    return entry | {k: v for k in ("error", "worker") if (v := getattr(attempt, k))}


def event_to(event: StoredEvent) -> Item:
    """Returns an event's row without its body."""
    key = event_key(event.source, event.event_id)
    item: Item = {
        "pk": key.pk,
        "sk": key.sk,
        "source": event.source,
        "event_id": event.event_id,
        "type": event.type,
        "received_at": to_ms(event.received_at),
        "received_bucket": received_bucket(event.received_at, event.event_id),
        "expires_at": to_seconds(event.received_at + EVENT_LIFE),
        "fingerprint": event.fingerprint,
        "signature_hash": event.signature_hash,
        "verified_with": event.verified_with,
        "headers": dict(event.headers),
        "runs": list(event.runs),
    }
    if event.occurred_at is not None:
        item["occurred_at"] = to_ms(event.occurred_at)
    if event.guard:
        item["guard"] = event.guard
    if event.request_id:
        item["request_id"] = event.request_id
    if event.agent:
        item["agent"] = event.agent
    if event.ordering_keys:
        item["ordering_keys"] = dict(event.ordering_keys)
    return item


def event_from(item: Item, body: bytes) -> StoredEvent:
    """Reads an event row; its body is read apart, since it may lie elsewhere."""
    return StoredEvent(
        source=item["source"],
        event_id=item["event_id"],
        type=item["type"],
        received_at=from_ms(item["received_at"]),
        body=body,
        fingerprint=item["fingerprint"],
        headers=item["headers"],
        runs=tuple(item["runs"]),
        signature_hash=item["signature_hash"],
        verified_with=item["verified_with"],
        occurred_at=from_ms(item["occurred_at"]) if "occurred_at" in item else None,
        guard=item.get("guard", ""),
        request_id=item.get("request_id", ""),
        agent=item.get("agent", ""),
        ordering_keys=item.get("ordering_keys", {}),
    )


def _attempt_from(entry: Mapping[str, Any]) -> Attempt:
    times = {name: from_ms(entry[name]) for name in ("started_at", "ended_at")}
    return Attempt(**{**entry, **times})


def _shard(text: str, shards: int) -> int:
    return sha256(text.encode()).digest()[0] % shards
