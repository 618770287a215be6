"""Recognises a captured body that comes again under a fresh id (G6).

Where a provider signs neither id nor time, a signature stays valid for ever, and whoever saw
one delivery can send it again with another id. A row keyed by the signed content remembers
the id it was first seen under.
"""

from datetime import timedelta
from enum import StrEnum
from hashlib import sha256
from typing import Any, Final

from webhook_inbox.domain.conditions import Condition, Equals, every
from webhook_inbox.domain.errors import ConditionFailed, Unavailable
from webhook_inbox.domain.model import StoredEvent
from webhook_inbox.domain.ports import Item, Table
from webhook_inbox.domain.timestamps import to_ms, to_seconds
from webhook_inbox.ledger.schema import EVENT_LIFE, absent, event_key, guard_key, live

# Longer than an ingest invocation lives: whoever wrote a younger guard may still be storing
# its event.
SETTLING: Final = timedelta(seconds=30)
# A guard of our own that is younger stays ours while we store: longer, too, than ingest lives.
OURS_FOR: Final = timedelta(seconds=15)


class GuardResult(StrEnum):
    """What the guard knows of a content."""

    FIRST = "first"  # new, or under this very id before
    REPLAYED = "replayed"  # accepted before, under another id


def content_hash(content: bytes, *, agent: str = "") -> str:
    """Returns the SHA-256, in hex, that a content is guarded by; that of each agent is its own."""
    # No agent's name holds a zero byte.
    return sha256(agent.encode() + b"\0" + content if agent else content).hexdigest()


def check(table: Table, event: StoredEvent) -> GuardResult:
    """Claims the event's content for its id, or tells which way it was seen before.

    Raises:
        Unavailable: the table failed, or another id is just being stored with this content.
    """
    try:
        _write(table, event, absent(event.received_at))
    except ConditionFailed as error:
        return _known(table, event, error.old or {})
    return GuardResult.FIRST


def _known(table: Table, event: StoredEvent, guard: dict[str, Any]) -> GuardResult:
    holder = guard.get("event_id", "")
    ours = holder == event.event_id
    if ours and guard["written_at"] > to_ms(event.received_at - OURS_FOR):
        return GuardResult.FIRST
    stored = live(table.get(event_key(event.source, holder)), event.received_at)
    if stored is not None and _ran(stored, event):
        return GuardResult.FIRST if ours else GuardResult.REPLAYED
    if not ours and guard.get("written_at", 0) > to_ms(event.received_at - SETTLING):
        raise Unavailable("ledger", "guard", "another delivery of this content is being stored")
    # Its writer died before storing an event, or was refused for a conflict: nothing of this
    # content ever ran, so the guard must not keep it out. One of our own is written anew, or
    # whoever has seen its age could take it over while we store.
    unchanged = every(Equals("event_id", holder), Equals("written_at", guard["written_at"]))
    try:
        _write(table, event, unchanged)
    except ConditionFailed as error:
        raise Unavailable("ledger", "guard", "another delivery took the guard over") from error
    return GuardResult.FIRST


def _ran(stored: Item, event: StoredEvent) -> bool:
    # By the fingerprint too: an honest retry that changed a volatile field has a guard of its
    # own, and whoever captured it must not run the event again.
    return event.guard == stored.get("guard") or event.fingerprint == stored["fingerprint"]


def _write(table: Table, event: StoredEvent, when: Condition) -> None:
    key = guard_key(event.source, event.guard)
    row = {
        "pk": key.pk,
        "sk": key.sk,
        "event_id": event.event_id,
        "written_at": to_ms(event.received_at),
        "expires_at": to_seconds(event.received_at + EVENT_LIFE),
    }
    table.put(row, when=when)
