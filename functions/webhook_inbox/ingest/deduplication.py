"""Records an event once and sends its runs; for a single event and for an item of a batch.

    event ──► replay guard ──► event row (conditional put) ──► one message per run
                                    │ exists
                                    ├─ same fingerprint: duplicate; runs without a row are sent
                                    └─ other fingerprint: conflict (G7)

The replay guard recognises a captured body under a fresh id (G6). Where a provider signs neither
id nor time, a signature is valid forever, so anyone who saw one delivery can send it again with
another id. The guard row, keyed by a hash of the signed content, stores the first id seen with it.

A crash between put and send heals when the event is delivered again (G5) or by the reconciler.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final

from webhook_inbox.domain.conditions import Condition, Equals, every
from webhook_inbox.domain.errors import ConditionFailed, Unavailable
from webhook_inbox.domain.manifest import Manifest
from webhook_inbox.domain.model import StoredEvent
from webhook_inbox.domain.ports import Blobs, Item, Table
from webhook_inbox.domain.timestamps import from_ms, to_ms, to_seconds
from webhook_inbox.ingest.receipt import IngestOutcome
from webhook_inbox.ledger import payloads
from webhook_inbox.ledger.schema import (
    EVENT_LIFE,
    RUN_LIFE,
    RUN_PREFIX,
    absent,
    conflict_key,
    event_key,
    event_to,
    guard_key,
    live,
)
from webhook_inbox.queue.lanes import Lanes
from webhook_inbox.queue.message import RunMessage

# The reconciler has checked events of this age; a duplicate need not check them again.
RECONCILED_AFTER: Final = timedelta(minutes=15)
# Longer than an ingest invocation: the writer of a younger guard may still be storing its event.
GUARD_GRACE: Final = timedelta(seconds=30)
# Also longer than an ingest invocation. A guard that this event wrote more recently is left alone.
OURS_FOR: Final = timedelta(seconds=15)


@dataclass(frozen=True, slots=True)
class Recorded:
    """The outcome of a verified event, and its runs that have to be sent, as (lane, run)."""

    outcome: IngestOutcome
    runs: Sequence[tuple[str, RunMessage]] = ()


class IdempotentReceiver:
    """Records verified events, each once."""

    def __init__(self, *, manifest: Manifest, table: Table, lanes: Lanes, blobs: Blobs) -> None:
        self._manifest = manifest
        self._table = table
        self._lanes = lanes
        self._blobs = blobs

    def take(self, event: StoredEvent) -> IngestOutcome:
        """Records an event and sends its runs.

        Returns:
            ACCEPTED, DUPLICATE, REPLAYED or CONFLICT.

        Raises:
            Unavailable: storage or queue failed; the event may be stored and some runs sent.
        """
        recorded = self.record(event)
        self.send(recorded.runs)
        return recorded.outcome

    def record(self, event: StoredEvent) -> Recorded:
        """Records an event; the caller sends its runs.

        Raises:
            Unavailable: storage failed; the event may be stored.
        """
        if event.guard and self._replays(event):
            return Recorded(IngestOutcome.REPLAYED)
        known = self._store(event)
        if known is None:
            runs = self._messages_for(event, event.runs, event.ordering_keys)
            return Recorded(IngestOutcome.ACCEPTED, runs)
        if known["fingerprint"] != event.fingerprint:
            self._store_conflict(event, known)
            return Recorded(IngestOutcome.CONFLICT)
        # The ordering keys it was accepted with, even if a deployment has changed them since.
        ordering_keys = known.get("ordering_keys", {})
        runs = self._messages_for(event, self._unsent(event, known), ordering_keys)
        return Recorded(IngestOutcome.DUPLICATE, runs)

    def send(self, runs: Iterable[tuple[str, RunMessage]]) -> None:
        """Sends runs, up to ten of one lane in a call.

        Raises:
            Unavailable: the queue failed; some may be sent.
        """
        self._lanes.send(runs)

    def _replays(self, event: StoredEvent) -> bool:
        """Claims the content for the event's id; True if it was already accepted under another id.

        Raises:
            Unavailable: the table failed, or another id is being stored with this content.
        """
        try:
            self._put_guard(event, absent(event.received_at))
        except ConditionFailed as error:
            return self._known_content(event, error.old or {})
        return False

    def _known_content(self, event: StoredEvent, guard: Item) -> bool:
        holder = guard.get("event_id", "")
        ours = holder == event.event_id
        if ours and guard["written_at"] > to_ms(event.received_at - OURS_FOR):
            return False
        stored = live(self._table.get(event_key(event.source, holder)), event.received_at)
        if stored is not None and _same_content(stored, event):
            return not ours
        if not ours and guard.get("written_at", 0) > to_ms(event.received_at - GUARD_GRACE):
            raise Unavailable("ledger", "guard", "another delivery of this content is being stored")
        # Its writer crashed before it stored an event, or met a conflict: this content has never
        # run, so the guard must not reject it. The event's own old guard is renewed as well;
        # otherwise another delivery could take it over by its age during this store.
        unchanged = every(Equals("event_id", holder), Equals("written_at", guard["written_at"]))
        try:
            self._put_guard(event, unchanged)
        except ConditionFailed as error:
            raise Unavailable("ledger", "guard", "another delivery took the guard over") from error
        return False

    def _put_guard(self, event: StoredEvent, when: Condition) -> None:
        key = guard_key(event.source, event.guard)
        row = {
            "pk": key.pk,
            "sk": key.sk,
            "event_id": event.event_id,
            "written_at": to_ms(event.received_at),
            "expires_at": to_seconds(event.received_at + EVENT_LIFE),
        }
        self._table.put(row, when=when)

    def _store(self, event: StoredEvent) -> Item | None:
        """Writes the event's row; returns the one that was there before, if any."""
        packed = payloads.pack(event.body, source=event.source)
        if packed.blob_key:
            # Read first, so that a duplicate uploads nothing.
            known = live(
                self._table.get(event_key(event.source, event.event_id)), event.received_at
            )
            if known is not None:
                return known
            self._blobs.put(packed.blob_key, packed.blob)
        row = {**event_to(event), **packed.attributes}
        try:
            self._table.put(row, when=absent(event.received_at))
        except ConditionFailed as error:
            # This call's own row if an earlier try succeeded and its answer was lost. The request
            # id distinguishes it from another delivery in the same millisecond.
            return None if error.old == row else error.old
        return None

    def _unsent(self, event: StoredEvent, known: Item) -> list[str]:
        """Returns the runs that a crash between put and send left without a message (G5)."""
        if from_ms(known["received_at"]) < event.received_at - RECONCILED_AFTER:
            return []
        # A run that expires earlier belongs to an expired event with the same id.
        end = to_seconds(from_ms(known["received_at"]) + RUN_LIFE)
        begun = {
            row["sk"].removeprefix(RUN_PREFIX)
            for row in self._table.query(known["pk"], sk_prefix=RUN_PREFIX)
            if row["expires_at"] >= end
        }
        return [name for name in known["runs"] if name not in begun]

    def _messages_for(
        self, event: StoredEvent, handlers: Iterable[str], ordering_keys: Mapping[str, str]
    ) -> list[tuple[str, RunMessage]]:
        return [
            (
                self._manifest.lane_of(name),
                RunMessage(
                    event.source, event.event_id, name, ordering_key=ordering_keys.get(name, "")
                ),
            )
            for name in handlers
        ]

    def _store_conflict(self, event: StoredEvent, known: Item) -> None:
        packed = payloads.pack(event.body, source=event.source)
        if packed.blob_key:
            self._blobs.put(packed.blob_key, packed.blob)
        key = conflict_key(event.source, event.event_id, event.fingerprint)
        row: dict[str, Any] = {
            "pk": key.pk,
            "sk": key.sk,
            "type": event.type,
            "received_at": to_ms(event.received_at),
            "expires_at": to_seconds(event.received_at + EVENT_LIFE),
            "fingerprint": event.fingerprint,
            "stored_fingerprint": known["fingerprint"],
            "headers": dict(event.headers),
            **packed.attributes,
        }
        self._table.put(row)


def _same_content(stored: Item, event: StoredEvent) -> bool:
    # A retry that changed a volatile field has a guard of its own but the same fingerprint; if it
    # is captured, it must not cause another run.
    return event.guard == stored.get("guard") or event.fingerprint == stored["fingerprint"]
