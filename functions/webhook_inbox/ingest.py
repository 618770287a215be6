"""Ingest: verify a delivery, record its event once, send its runs, answer.

    deliver ── verify ── name ──► event row (conditional put) ──► one message per run ──► 2xx
                                     │ exists
                                     ├─ same fingerprint: duplicate; runs without a row are sent
                                     └─ other fingerprint: conflict (G7)

Two calls for a new event, one for a duplicate older than 15 minutes, two for a younger one.
A crash between put and send heals on the provider's next retry (G5) or by the reconciler.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from datetime import timedelta
from enum import StrEnum
from hashlib import sha256
from traceback import format_exception
from typing import Any, Final

from webhook_inbox import bodies, guard, rejected
from webhook_inbox.errors import ConditionFailed, Reason, Rejected, Unavailable
from webhook_inbox.fingerprints import fingerprint
from webhook_inbox.instants import from_ms, to_ms, to_seconds
from webhook_inbox.lanes import Lanes
from webhook_inbox.live_secrets import LiveSecrets
from webhook_inbox.manifest import Manifest, SourceSpec
from webhook_inbox.model import Delivery, StoredEvent
from webhook_inbox.ports import Blobs, Item, Table
from webhook_inbox.recipe import Answer, Identity, Recipe, Verified
from webhook_inbox.reference import Reference
from webhook_inbox.rows import (
    EVENT_LIFE,
    RUN_PREFIX,
    absent,
    conflict_key,
    dedupe_key,
    event_key,
    event_to,
    live,
)

# From this age on the reconciler has looked at an event, so a duplicate need not.
RECONCILED: Final = timedelta(minutes=15)
GENERAL_HEADERS: Final = frozenset({"content-type", "user-agent", "traceparent", "tracestate"})
HEADER_LIMIT: Final = 1024


class Outcome(StrEnum):
    """What became of a delivery; the value is the metric's dimension."""

    ACCEPTED = "accepted"  # a new event, stored, its runs sent
    DUPLICATE = "duplicate"  # known, and its runs are under way or done
    REPLAYED = "replayed"  # known content under a fresh id: not run (G6)
    CONFLICT = "conflict"  # known id, other content: refused and kept (G7)
    IGNORED = "ignored"  # a type that this source does not store
    HANDSHAKE = "handshake"  # a challenge, answered
    REJECTED = "rejected"  # failed verification
    NO_SECRET = "no-secret"  # cannot be verified yet: kept, and the provider retries
    UNKNOWN_SOURCE = "unknown-source"
    WRONG_METHOD = "wrong-method"
    UNAVAILABLE = "unavailable"  # storage or queue failed: the provider retries
    BROKEN = "broken"  # our own fault: the provider retries


@dataclass(frozen=True, slots=True)
class Receipt:
    """The outcome of a delivery and the HTTP status it is answered with.

    `reason` and `detail` say why a delivery was not accepted; neither holds a secret.
    `secret` tells which live secret verified it, None where none did.
    """

    outcome: Outcome
    status: int
    source: str = ""
    event_id: str = ""
    type: str = ""
    reason: str = ""
    detail: str = ""
    answer: Answer | None = None
    secret: int | None = None
    handlers: tuple[str, ...] = field(default_factory=tuple)


class Ingest:
    """The receiving use case. Its collaborators are ports; it keeps no state but their caches."""

    def __init__(
        self,
        *,
        manifest: Manifest,
        recipes: Callable[[SourceSpec], Recipe],
        table: Table,
        lanes: Lanes,
        blobs: Blobs,
        secrets: LiveSecrets,
    ) -> None:
        self._manifest = manifest
        self._recipes = recipes
        self._table = table
        self._lanes = lanes
        self._blobs = blobs
        self._secrets = secrets

    def receive(self, delivery: Delivery) -> Receipt:
        """Takes one delivery in and tells what to answer. Never raises for any input."""
        source = self._manifest.sources.get(delivery.source)
        if source is None:
            return Receipt(Outcome.UNKNOWN_SOURCE, 404, detail="no such source")
        try:
            receipt = self._answer(delivery, source)
        except Exception as error:  # noqa: BLE001 - our own fault: the provider retries
            receipt = Receipt(Outcome.BROKEN, 503, detail="".join(format_exception(error)))
        return replace(receipt, source=source.name)

    def _answer(self, delivery: Delivery, source: SourceSpec) -> Receipt:
        if delivery.method != "POST":
            return Receipt(Outcome.WRONG_METHOD, 405, detail="use POST")
        recipe = self._recipes(source)
        try:
            try:
                return self._judge(delivery, source, recipe)
            except Rejected as error:
                return self._refuse(delivery, source, recipe, error)
        except Unavailable as error:
            return Receipt(Outcome.UNAVAILABLE, 503, detail=str(error))

    def _judge(self, delivery: Delivery, source: SourceSpec, recipe: Recipe) -> Receipt:
        verified = self._verify(delivery, source, recipe)
        answer = recipe.handshake(delivery) if recipe.handshake else None
        if answer is not None:
            return Receipt(Outcome.HANDSHAKE, answer.status, answer=answer, secret=verified.secret)
        identity = recipe.identify(delivery)
        if not self._manifest.wants(source, identity.type):
            return self._receipt(Outcome.IGNORED, 200, identity, verified)
        return self._accept(delivery, source, recipe, identity, verified)

    def _verify(self, delivery: Delivery, source: SourceSpec, recipe: Recipe) -> Verified:
        secrets = self._secrets.get(source.secret)
        try:
            return _verified(recipe, delivery, secrets)
        except Rejected as error:
            if error.reason not in {Reason.INVALID_SIGNATURE, Reason.NO_SECRET}:
                raise
            # A secret set or rotated within the cache's life: look once more before refusing.
            fresh = self._secrets.refresh(source.secret)
            if not fresh or fresh == secrets:
                raise
        return _verified(recipe, delivery, fresh)

    def _refuse(
        self, delivery: Delivery, source: SourceSpec, recipe: Recipe, error: Rejected
    ) -> Receipt:
        status, reason = recipe.statuses[error.reason], str(error.reason)
        if error.reason is not Reason.NO_SECRET:
            return Receipt(Outcome.REJECTED, status, reason=reason, detail=error.detail)
        needed = GENERAL_HEADERS | recipe.kept_headers | recipe.signature_headers
        kept = rejected.keep(self._table, self._blobs, delivery, error.reason, headers=needed)
        detail = f"{error.detail}: webhookctl secrets set {source.secret}"
        detail += "; the delivery is kept" if kept else "; this minute's share is kept already"
        return Receipt(Outcome.NO_SECRET, status, reason=reason, detail=detail)

    def _accept(
        self,
        delivery: Delivery,
        source: SourceSpec,
        recipe: Recipe,
        identity: Identity,
        verified: Verified,
    ) -> Receipt:
        event = self._event(delivery, source, recipe, identity, verified)
        if event.guard and guard.check(self._table, event) is guard.Seen.REPLAYED:
            return self._receipt(Outcome.REPLAYED, 200, identity, verified)
        known = self._record(event)
        if known is None:
            self._send(event, event.runs)
            return self._receipt(
                Outcome.ACCEPTED, recipe.accepted_status, identity, verified, event.runs
            )
        if known["fingerprint"] != event.fingerprint:
            self._keep_conflict(event, known)
            return self._receipt(Outcome.CONFLICT, recipe.conflict_status, identity, verified)
        self._heal(event, known)
        return self._receipt(Outcome.DUPLICATE, 200, identity, verified)

    def _event(
        self,
        delivery: Delivery,
        source: SourceSpec,
        recipe: Recipe,
        identity: Identity,
        verified: Verified,
    ) -> StoredEvent:
        kept = GENERAL_HEADERS | recipe.kept_headers
        content = recipe.guard(delivery, identity) if recipe.guard else None
        runs = self._manifest.runs_for(source.name, identity.type)
        return StoredEvent(
            source=source.name,
            event_id=dedupe_key(identity.event_id),
            type=identity.type,
            received_at=delivery.received_at,
            body=delivery.body,
            fingerprint=fingerprint(delivery.body, recipe.volatile),
            headers={k: _storable(v) for k, v in delivery.headers.items() if k in kept},
            runs=tuple(spec.name for spec in runs),
            signature_hash=sha256(verified.signature.encode()).hexdigest(),
            verified_with=verified.secret,
            occurred_at=identity.occurred_at or verified.signed_at,
            guard="" if content is None else guard.content_hash(content),
            request_id=delivery.request_id,
        )

    def _record(self, event: StoredEvent) -> Item | None:
        """Writes the event's row; returns the one that was there before, if any."""
        packed = bodies.pack(event.body, source=event.source)
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

    def _heal(self, event: StoredEvent, known: Item) -> None:
        """Sends the runs that a crash between put and send left without a message (G5)."""
        if from_ms(known["received_at"]) < event.received_at - RECONCILED:
            return
        begun = {
            row["sk"].removeprefix(RUN_PREFIX)
            for row in self._table.query(known["pk"], sk_prefix=RUN_PREFIX)
        }
        self._send(event, [name for name in known["runs"] if name not in begun])

    def _send(self, event: StoredEvent, handlers: Iterable[str]) -> None:
        self._lanes.send(
            (self._manifest.lane_of(name), Reference(event.source, event.event_id, name))
            for name in handlers
        )

    def _keep_conflict(self, event: StoredEvent, known: Item) -> None:
        packed = bodies.pack(event.body, source=event.source)
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

    @staticmethod
    def _receipt(
        outcome: Outcome,
        status: int,
        identity: Identity,
        verified: Verified,
        handlers: tuple[str, ...] = (),
    ) -> Receipt:
        return Receipt(
            outcome,
            status,
            event_id=dedupe_key(identity.event_id),
            type=identity.type,
            secret=verified.secret,
            handlers=handlers,
        )


def _verified(recipe: Recipe, delivery: Delivery, secrets: tuple[str, ...]) -> Verified:
    if not secrets:
        raise Rejected(Reason.NO_SECRET, "the source's secret is not set")
    return recipe.verify(delivery, secrets)


def _storable(value: str) -> str:
    return value[:HEADER_LIMIT].encode(errors="replace").decode()
