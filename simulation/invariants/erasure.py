"""Checks what is stored of an event after its erasure reported that no payload is left."""

from collections.abc import Iterable

from simulation.invariants.observer import Observer, must
from webhook_inbox.adapters.memory import MemoryBlobs
from webhook_inbox.domain.ports import Item
from webhook_inbox.ledger import payloads
from webhook_inbox.ledger.schema import conflict_key, event_key


def check_emptied(observer: Observer, rows: Iterable[Item], blobs: MemoryBlobs) -> None:
    """Checks that S3 has no object of these events, and that no row has a payload."""
    if not observer.emptied:
        return
    partitions: set[str] = set()
    for event in observer.emptied:
        prefix = payloads.event_prefix(*event)
        left = [key for key in blobs.objects if key.startswith(prefix)]
        must("erasure", not left, f"{event} was erased, and S3 has {left}")
        partitions |= {event_key(*event).pk, conflict_key(*event, "").pk}
    for row in rows:
        if row["pk"] in partitions and "headers" in row:
            empty = not row["headers"] and not {"body", "body_ref"} & row.keys()
            must("erasure", empty, f"{row['pk']} {row['sk']} has a payload after its erasure")
