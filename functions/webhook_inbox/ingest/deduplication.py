"""Recording an event once and sending its runs; for one that came alone or in a batch.

    event ──► guard ──► event row (conditional put) ──► one message per run
                              │ exists
                              ├─ same fingerprint: duplicate; runs without a row are sent
                              └─ other fingerprint: conflict (G7)

A crash between put and send heals when the event comes again (G5) or by the reconciler.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import Any, Final

from webhook_inbox.domain.errors import ConditionFailed
from webhook_inbox.domain.manifest import Manifest
from webhook_inbox.domain.model import StoredEvent
from webhook_inbox.domain.ports import Blobs, Item, Table
from webhook_inbox.domain.timestamps import from_ms, to_ms, to_seconds
from webhook_inbox.ingest.replay_attacks import GuardResult, check
from webhook_inbox.ledger import payloads
from webhook_inbox.ledger.schema import (
    EVENT_LIFE,
    RUN_LIFE,
    RUN_PREFIX,
    absent,
    conflict_key,
    event_key,
    event_to,
    live,
)
from webhook_inbox.queue.lanes import Lanes
from webhook_inbox.queue.message import RunMessage

# From this age on the reconciler has looked at an event, so a duplicate need not.
RECONCILED: Final = timedelta(minutes=15)


class Taken(StrEnum):
    """What became of a verified event."""

    ACCEPTED = "accepted"  # new: stored, its runs sent
    DUPLICATE = "duplicate"  # known, and its runs are under way or done
    REPLAYED = "replayed"  # known content under a fresh id: not run (G6)
    CONFLICT = "conflict"  # known id, other content: refused and kept (G7)


@dataclass(frozen=True, slots=True)
class Recorded:
    """What became of a verified event, and which runs of it have to be sent, by (lane, run)."""

    taken: Taken
    runs: Sequence[tuple[str, RunMessage]] = ()


class IdempotentReceiver:
    """Takes verified events in."""

    def __init__(self, *, manifest: Manifest, table: Table, lanes: Lanes, blobs: Blobs) -> None:
        self._manifest = manifest
        self._table = table
        self._lanes = lanes
        self._blobs = blobs

    def take(self, event: StoredEvent) -> Taken:
        """Records an event and sends its runs, or tells which way it was known.

        Raises:
            Unavailable: storage or queue failed; the event may be stored and some runs sent.
        """
        recorded = self.record(event)
        self.send(recorded.runs)
        return recorded.taken

    def record(self, event: StoredEvent) -> Recorded:
        """Records an event, or tells which way it was known; its runs have yet to be sent.

        Raises:
            Unavailable: storage failed; the event may be stored.
        """
        if event.guard and check(self._table, event) is GuardResult.REPLAYED:
            return Recorded(Taken.REPLAYED)
        known = self._store(event)
        if known is None:
            return Recorded(Taken.ACCEPTED, self._addressed(event, event.runs, event.ordering_keys))
        if known["fingerprint"] != event.fingerprint:
            self._keep_conflict(event, known)
            return Recorded(Taken.CONFLICT)
        # In order with what it was accepted for, whatever its handlers say by now.
        ordering_keys = known.get("ordering_keys", {})
        unsent = self._unsent(event, known)
        return Recorded(Taken.DUPLICATE, self._addressed(event, unsent, ordering_keys))

    def send(self, runs: Iterable[tuple[str, RunMessage]]) -> None:
        """Sends runs, up to ten of one lane in a call.

        Raises:
            Unavailable: the queue failed; some may be sent.
        """
        self._lanes.send(runs)

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
            # Our own row: an earlier try of this call succeeded and its answer was lost. The
            # request's id tells it from another delivery in the same millisecond.
            return None if error.old == row else error.old
        return None

    def _unsent(self, event: StoredEvent, known: Item) -> list[str]:
        """Returns the runs that a crash between put and send left without a message (G5)."""
        if from_ms(known["received_at"]) < event.received_at - RECONCILED:
            return []
        # A run that ends before this event's would is of an older event with its id.
        end = to_seconds(from_ms(known["received_at"]) + RUN_LIFE)
        begun = {
            row["sk"].removeprefix(RUN_PREFIX)
            for row in self._table.query(known["pk"], sk_prefix=RUN_PREFIX)
            if row["expires_at"] >= end
        }
        return [name for name in known["runs"] if name not in begun]

    def _addressed(
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

    def _keep_conflict(self, event: StoredEvent, known: Item) -> None:
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
