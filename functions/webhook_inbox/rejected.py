"""Keeps deliveries that could not be judged, so that nothing a provider sent is lost.

What is kept was never verified: the number per source and minute is bounded, so that a flood
fills neither the table nor the bill.
"""

from datetime import timedelta
from hashlib import sha256
from typing import Final

from webhook_inbox import bodies
from webhook_inbox.conditions import Absent, Less, either
from webhook_inbox.errors import ConditionFailed, Reason
from webhook_inbox.instants import to_ms, to_seconds
from webhook_inbox.model import Delivery
from webhook_inbox.ports import Blobs, Change, Key, Table

LIFE: Final = timedelta(days=7)
PER_MINUTE: Final = 60


def keep(
    table: Table, blobs: Blobs, delivery: Delivery, reason: Reason, *, headers: frozenset[str]
) -> bool:
    """Stores a delivery without making it an event; False when this minute's share is used up.

    Of its headers only those named are kept: what its scheme and its naming need.

    Raises:
        Unavailable: storage failed.
    """
    expires_at = to_seconds(delivery.received_at + LIFE)
    if not _within_bound(table, delivery, expires_at):
        return False
    packed = bodies.pack(delivery.body, source=delivery.source, prefix=bodies.REJECTED_PREFIX)
    if packed.blob_key:
        blobs.put(packed.blob_key, packed.blob)
    digest = sha256(delivery.body).hexdigest()
    row = {
        "pk": f"rejected#{delivery.source}",
        "sk": f"{to_ms(delivery.received_at):013d}#{digest[:16]}",
        "reason": str(reason),
        "method": delivery.method,
        "path": _text(delivery.path),
        "headers": {k: _text(v) for k, v in delivery.headers.items() if k in headers},
        "fingerprint": digest,
        "expires_at": expires_at,
        **packed.attributes,
    }
    table.put(row)
    return True


def _within_bound(table: Table, delivery: Delivery, expires_at: int) -> bool:
    key = Key(f"rejected-count#{delivery.source}", f"{delivery.received_at:%Y-%m-%dT%H:%M}")
    below = either(Absent("kept"), Less("kept", PER_MINUTE))
    try:
        table.update(key, Change(set={"expires_at": expires_at}, add={"kept": 1}), when=below)
    except ConditionFailed:
        return False
    return True


def _text(value: str) -> str:
    # JSON can spell lone surrogates, and no store takes them.
    return value.encode(errors="replace").decode()
