"""Records an event once and sends its runs; for a single event and for an item of a batch.

    event ──► guard ──► event row (conditional put) ──► one message per run, or one held row
                │           │ exists
                │           ├─ same fingerprint: duplicate; runs without a row are sent, or held
                │           └─ other fingerprint: conflict (G7)
                └─ known content: linked to its first event and held, run or stored without runs

The guard recognises signed content under a fresh id (G6). Where a provider signs neither id nor
time, a signature is valid forever: anyone who saw one delivery can send it again with another id,
and the provider itself sends the same body for a second event. The two look the same, so a person
decides. The guard row, keyed by a hash of the signed content, stores the first id seen with it.

A crash between put and send heals when the event is delivered again (G5) or by the reconciler. The
event's row says whether its runs begin held, so no writer sends a run of a held event.
"""

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial
from typing import Any, Final

from webhook_inbox.domain.conditions import Condition, Equals, Present, either, every
from webhook_inbox.domain.errors import ConditionFailed, Unavailable
from webhook_inbox.domain.manifest import DROP, HOLD, Manifest
from webhook_inbox.domain.model import DropReason, StoredEvent
from webhook_inbox.domain.ports import Item, Ports
from webhook_inbox.domain.timestamps import from_ms, to_ms, to_seconds
from webhook_inbox.ingest.fingerprint import Fingerprint, same_content
from webhook_inbox.ingest.receipt import IngestOutcome
from webhook_inbox.ledger import payloads
from webhook_inbox.ledger.schema import (
    EVENT_LIFE,
    RUN_LIFE,
    RUN_PREFIX,
    absent,
    conflict_key,
    event_from,
    event_key,
    event_to,
    guard_key,
    hash_in,
    hold,
    live,
)
from webhook_inbox.queue.lanes import Lanes
from webhook_inbox.queue.message import RunMessage

# The reconciler has checked events of this age; a duplicate need not check them again.
RECONCILED_AFTER: Final = timedelta(minutes=15)
# The runs of an event begin within this time unless the queue has a backlog.
PROMPT: Final = timedelta(seconds=3)
# Longer than an ingest invocation: the writer of a younger guard may still be storing its event.
GUARD_GRACE: Final = timedelta(seconds=30)
# Also longer than an ingest invocation. A guard that this event wrote more recently is left alone.
OURS_FOR: Final = timedelta(seconds=15)


@dataclass(frozen=True, slots=True)
class Recorded:
    """The outcome of a verified event, and its runs that have to be sent, as (lane, run).

    `unfinished` is True for a duplicate whose runs should have begun before, and are sent again.
    """

    outcome: IngestOutcome
    runs: Sequence[tuple[str, RunMessage]] = ()
    unfinished: bool = False


class IdempotentReceiver:
    """Records verified events, each once."""

    def __init__(self, manifest: Manifest, ports: Ports) -> None:
        self._manifest = manifest
        self._table = ports.table
        self._lanes = Lanes(ports.queues)
        self._blobs = ports.blobs

    def take(self, event: StoredEvent) -> Recorded:
        """Records an event and sends its runs.

        Returns:
            The outcome ACCEPTED, HELD, UNREADABLE, CONTRADICTED, DUPLICATE, REPLAYED or CONFLICT.

        Raises:
            Unavailable: storage or queue failed; the event may be stored and some runs sent.
        """
        recorded = self.record(event)
        self.send(recorded.runs)
        return recorded

    def record(self, event: StoredEvent) -> Recorded:
        """Records an event; the caller sends its runs.

        Raises:
            Unavailable: storage failed; the event may be stored.
        """
        admitted = self._guarded(event) if event.guard else event
        if admitted is None:
            return Recorded(IngestOutcome.REPLAYED)
        known = self._store(admitted)
        if known is None:
            runs = self._begin(admitted, admitted.runs)
            outcome = _outcome_of_new(admitted)
            return Recorded(outcome, runs)
        if not self._is_same(event, known):
            self._store_conflict(event, known)
            return Recorded(IngestOutcome.CONFLICT)
        # As it was accepted, even if a deployment has changed its ordering keys or its rule since.
        runs = self._begin(event_from(known, b""), self._unsent(event, known))
        late = from_ms(known["received_at"]) <= event.received_at - PROMPT
        return Recorded(IngestOutcome.DUPLICATE, runs, unfinished=late and bool(runs))

    def ignore(self, event: StoredEvent) -> None:
        """Claims the signed content of an event whose type is not stored.

        Its signature may fit other content or another type, which is stored; it must not run.

        Raises:
            Unavailable: the table failed.
        """
        with suppress(ConditionFailed):
            self._put_guard(event, absent(event.received_at), ignored=True)

    def send(self, runs: Iterable[tuple[str, RunMessage]]) -> None:
        """Sends runs, up to ten of one lane in a call.

        Raises:
            Unavailable: the queue failed; some may be sent.
        """
        self._lanes.send(runs)

    def _guarded(self, event: StoredEvent) -> StoredEvent | None:
        """Claims the content for the event's id; returns the event to store, None for none.

        An event whose content was accepted under another id is linked to that event.

        Raises:
            Unavailable: the table failed, or another id is being stored with this content.
        """
        try:
            self._put_guard(event, absent(event.received_at))
        except ConditionFailed as error:
            return self._known_content(event, error.old or {})
        return event

    def _known_content(self, event: StoredEvent, guard: Item) -> StoredEvent | None:
        holder = guard.get("event_id", "")
        ours = holder == event.event_id
        if "ignored" in guard:
            return self._after_ignored(event, guard)
        if ours and guard["written_at"] > to_ms(event.received_at - OURS_FOR):
            return event
        stored = live(self._table.get(event_key(event.source, holder)), event.received_at)
        if stored is not None and _same_content(stored, event):
            return event if ours else self._linked(event, holder, hash_in(stored, "fingerprint"))
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
        return event

    def _after_ignored(self, event: StoredEvent, guard: Item) -> StoredEvent | None:
        """Returns the event to store, None for none, if its content was ignored before.

        The same delivery may come again after its type is declared. No event is missing, so no
        other delivery takes the guard over: under another id or type, the content may be captured.
        """
        again = guard["event_id"] == event.event_id and guard["type"] == event.type
        if again and same_content(event.fingerprint, guard["ignored"]):
            return event
        return self._linked(event, guard["event_id"], guard["ignored"])

    def _linked(self, event: StoredEvent, first: str, content: str) -> StoredEvent | None:
        """Returns an event with a link to the first one; None if it is not stored.

        `content` is the fingerprint of the first event.
        """
        rule = self._manifest.sources[event.source].identical_body
        # No provider sends the same signed content in other bytes: it is a changed copy.
        if not same_content(event.fingerprint, content):
            return None
        if rule == DROP:
            dropped = str(DropReason.IDENTICAL_BODY)
            return replace(event, identical_to=first, runs=(), ordering_keys={}, dropped=dropped)
        held = event.held or (rule == HOLD and bool(event.runs))
        return replace(event, identical_to=first, held=held)

    def _put_guard(self, event: StoredEvent, when: Condition, *, ignored: bool = False) -> None:
        key = guard_key(event.source, event.guard)
        row: Item = {
            "pk": key.pk,
            "sk": key.sk,
            "event_id": event.event_id,
            "written_at": to_ms(event.received_at),
            "expires_at": to_seconds(event.received_at + EVENT_LIFE),
            **({"ignored": str(event.fingerprint), "type": event.type} if ignored else {}),
        }
        self._table.put(row, when=when)

    def _store(self, event: StoredEvent) -> Item | None:
        """Writes the event's row; returns the one that was there before, if any."""
        packed = payloads.pack_event(event)
        if packed.blob_key:
            # Read first, so that a duplicate uploads nothing.
            known = live(
                self._table.get(event_key(event.source, event.event_id)), event.received_at
            )
            if known is not None:
                return known
        row = {**event_to(event), **packed.store(self._blobs)}
        try:
            self._table.put(row, when=absent(event.received_at))
        except ConditionFailed as error:
            # This call's own row if an earlier try succeeded and its answer was lost. The request
            # id distinguishes it from another delivery in the same millisecond.
            return None if error.old == row else error.old
        return None

    def _is_same(self, event: StoredEvent, known: Item) -> bool:
        """Tells whether an event has the content that is stored under its id.

        Raises:
            Unavailable: the stored body cannot be read.
        """
        if same_content(event.fingerprint, hash_in(known, "fingerprint")):
            return True
        found, stored = event.fingerprint, partial(payloads.unpack, known, self._blobs)
        return isinstance(found, Fingerprint) and found.is_content_in(stored)

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

    def _begin(
        self, event: StoredEvent, handlers: Iterable[str]
    ) -> Sequence[tuple[str, RunMessage]]:
        """Returns the messages of runs that have no row; holds the runs of a held event instead."""
        if event.held:
            for name in handlers:
                hold(self._table, event, name)
            return ()
        return [(self._manifest.lane_of(name), RunMessage.first(event, name)) for name in handlers]

    def _store_conflict(self, event: StoredEvent, known: Item) -> None:
        """Stores a conflict once; without its payload after its event was erased.

        Its row is written before the event's row is read again, and its payload after that. So an
        erasure that this delivery does not see finds the row, and knows that a payload may follow.
        """
        key = conflict_key(event.source, event.event_id, str(event.fingerprint))
        row: dict[str, Any] = {
            "pk": key.pk,
            "sk": key.sk,
            "type": event.type,
            "received_at": to_ms(event.received_at),
            "expires_at": to_seconds(event.received_at + EVENT_LIFE),
            "fingerprint": str(event.fingerprint),
            "stored_fingerprint": hash_in(known, "fingerprint"),
            "headers": {},
        }
        try:
            if "erased_at" in known:
                erased = {"erased_at": row["received_at"], "unstored": True}
                self._table.put({**row, **erased}, when=absent(event.received_at))
                return
            new = either(absent(event.received_at), Present("arriving"))
            self._table.put({**row, "arriving": True}, when=new)
        except ConditionFailed:
            return
        if "erased_at" in (self._table.get(event_key(event.source, event.event_id)) or {}):
            return
        body = payloads.pack_event(event).store(self._blobs)
        self._table.put({**row, "headers": dict(event.headers), **body})


def _outcome_of_new(event: StoredEvent) -> IngestOutcome:
    if event.dropped:
        return IngestOutcome.REPLAYED
    if event.doubt:
        return IngestOutcome(event.doubt)
    return IngestOutcome.HELD if event.held else IngestOutcome.ACCEPTED


def _same_content(stored: Item, event: StoredEvent) -> bool:
    # A retry that changed a volatile field has a guard of its own but the same fingerprint; if it
    # is captured, it must not cause another run.
    same = same_content(event.fingerprint, hash_in(stored, "fingerprint"))
    return same or event.guard == hash_in(stored, "guard")
