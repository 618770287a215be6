"""Ingest: verify a delivery, record its event once, send its runs, answer.

    deliver ── greet, enrol ── verify ── handshake ── batch? ── name ──► acceptance ──► 2xx

Two calls for a new event, one for a duplicate older than 15 minutes, two for a younger one.
A batch is one event whose only run splits it.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from enum import StrEnum
from traceback import format_exception

from webhook_inbox.domain.errors import Reason, Rejected, Unavailable
from webhook_inbox.domain.manifest import Manifest, SourceSpec
from webhook_inbox.domain.model import Delivery, StoredEvent
from webhook_inbox.domain.ports import NOWHERE, Blobs, Fetcher, Table, Vault
from webhook_inbox.domain.provider import Answer, Identity, Provider, Verified
from webhook_inbox.domain.secrets import SecretCache
from webhook_inbox.ingest import enrolment, events
from webhook_inbox.ingest.deduplication import IdempotentReceiver, Taken
from webhook_inbox.ingest.rejected import RejectedStore
from webhook_inbox.ingest.verification import PublishedKeys, verify
from webhook_inbox.ledger.schema import dedupe_key
from webhook_inbox.queue.lanes import Lanes


class IngestOutcome(StrEnum):
    """What became of a delivery; the value is the metric's dimension."""

    ACCEPTED = "accepted"  # a new event, stored, its runs sent
    DUPLICATE = "duplicate"  # known, and its runs are under way or done
    REPLAYED = "replayed"  # known content under a fresh id: not run (G6)
    CONFLICT = "conflict"  # known id, other content: refused and kept (G7)
    IGNORED = "ignored"  # a type that this source does not store
    HANDSHAKE = "handshake"  # a challenge, answered
    ENROLLED = "enrolled"  # a secret, delivered by the provider and stored
    REJECTED = "rejected"  # failed verification: kept, within bounds
    NO_SECRET = "no-secret"  # cannot be verified yet: kept, and the provider retries
    UNKNOWN_SOURCE = "unknown-source"
    WRONG_METHOD = "wrong-method"
    UNAVAILABLE = "unavailable"  # storage or queue failed: the provider retries
    BROKEN = "broken"  # our own fault: the provider retries


@dataclass(frozen=True, slots=True)
class Receipt:
    """The outcome of a delivery and the HTTP status it is answered with.

    `reason` and `detail` say why a delivery was not accepted; neither holds a secret.
    `secret` tells which live secret verified it, None where none did; `retry` and
    `retry_reason` what the provider says of its repetitions.
    """

    outcome: IngestOutcome
    status: int
    source: str = ""
    event_id: str = ""
    type: str = ""
    reason: str = ""
    detail: str = ""
    answer: Answer | None = None
    secret: int | None = None
    handlers: tuple[str, ...] = field(default_factory=tuple)
    retry: int | None = None
    retry_reason: str = ""


class Ingest:
    """The receiving use case. Its collaborators are ports; it keeps no state but their caches."""

    def __init__(
        self,
        *,
        manifest: Manifest,
        providers: Callable[[SourceSpec], Provider],
        table: Table,
        lanes: Lanes,
        blobs: Blobs,
        secrets: SecretCache,
        fetcher: Fetcher = NOWHERE,
        vault: Vault = NOWHERE,
    ) -> None:
        self._manifest = manifest
        self._providers = providers
        self._table = table
        self._secrets = secrets
        self._keys = PublishedKeys(fetcher)
        self._fetcher = fetcher
        self._vault = vault
        self._box = RejectedStore(table, blobs, secrets)
        self._acceptance = IdempotentReceiver(
            manifest=manifest, table=table, lanes=lanes, blobs=blobs
        )

    def receive(self, delivery: Delivery) -> Receipt:
        """Takes one delivery in and tells what to answer. Never raises for any input."""
        source = self._manifest.sources.get(delivery.source)
        if source is None:
            return Receipt(IngestOutcome.UNKNOWN_SOURCE, 404, detail="no such source")
        try:
            receipt = self._answer(delivery, source)
        except Exception as error:  # noqa: BLE001 - our own fault: the provider retries
            receipt = Receipt(IngestOutcome.BROKEN, 503, detail="".join(format_exception(error)))
        return replace(receipt, source=source.name)

    def _answer(self, delivery: Delivery, source: SourceSpec) -> Receipt:
        provider = self._providers(source)
        try:
            try:
                return self._unsigned(delivery, source, provider) or self._judge(
                    delivery, source, provider
                )
            except Rejected as error:
                return self._refuse(delivery, source, provider, error)
        except Unavailable as error:
            return Receipt(IngestOutcome.UNAVAILABLE, 503, detail=str(error))

    def _unsigned(
        self, delivery: Delivery, source: SourceSpec, provider: Provider
    ) -> Receipt | None:
        """Answers what comes without a signature by design, None where it has to have one."""
        if provider.greet is not None:
            secrets = self._secrets.get(source.secret) if provider.needs_secret else ()
            answer = provider.greet(delivery, secrets)
            if answer is not None:
                return Receipt(IngestOutcome.HANDSHAKE, answer.status, answer=answer)
        if delivery.method != "POST":
            return Receipt(IngestOutcome.WRONG_METHOD, 405, detail="use POST")
        offer = provider.offer(delivery) if provider.offer else None
        if offer is None:
            return None
        enrolment.take(
            self._table,
            self._vault,
            source=source.name,
            secret=source.secret,
            offered=offer.secret,
            now=delivery.received_at,
        )
        return Receipt(IngestOutcome.ENROLLED, offer.answer.status, answer=offer.answer)

    def _judge(self, delivery: Delivery, source: SourceSpec, provider: Provider) -> Receipt:
        verified, secret = self._verify(delivery, source, provider)
        answer = provider.handshake(delivery, secret) if provider.handshake else None
        if answer is not None:
            if answer.visit is not None:
                self._fetcher.fetch(answer.visit)
            return Receipt(
                IngestOutcome.HANDSHAKE, answer.status, answer=answer, secret=verified.secret
            )
        identity, event = events.event_of(
            delivery, provider, verified, manifest=self._manifest, spec=source
        )
        if event is None:
            return _receipt(provider, IngestOutcome.IGNORED, 200, identity, verified)
        return self._accept(event, provider, identity, verified)

    def _accept(
        self, event: StoredEvent, provider: Provider, identity: Identity, verified: Verified
    ) -> Receipt:
        taken = self._acceptance.take(event)
        handlers = event.runs if taken is Taken.ACCEPTED else ()
        status = {
            Taken.ACCEPTED: provider.accepted_status,
            Taken.CONFLICT: provider.conflict_status,
        }
        outcome = IngestOutcome(taken.value)
        return _receipt(provider, outcome, status.get(taken, 200), identity, verified, handlers)

    def _verify(
        self, delivery: Delivery, source: SourceSpec, provider: Provider
    ) -> tuple[Verified, str]:
        """Returns how it was verified, and with which secret."""
        if not provider.needs_secret:
            return verify(provider, delivery, (), self._keys), ""
        secrets = self._secrets.get(source.secret)
        try:
            verified = verify(provider, delivery, secrets, self._keys)
        except Rejected as error:
            if error.reason not in {Reason.INVALID_SIGNATURE, Reason.NO_SECRET}:
                raise
            # A secret set or rotated within the cache's life: look once more before refusing.
            fresh = self._secrets.refresh(source.secret)
            if not fresh or fresh == secrets:
                raise
            secrets = fresh
            verified = verify(provider, delivery, secrets, self._keys)
        return verified, secrets[verified.secret]

    def _refuse(
        self, delivery: Delivery, source: SourceSpec, provider: Provider, error: Rejected
    ) -> Receipt:
        status, reason, detail = provider.statuses[error.reason], str(error.reason), error.detail
        # What offers a secret holds one: it is not kept (G10).
        offered = error.reason is Reason.NOT_ENROLLING
        kept = not offered and self._box.keep(delivery, error, provider)
        if error.reason is Reason.NO_SECRET:
            detail += f": webhookctl secrets set {source.secret}"
            detail += "; the delivery is kept" if kept else "; this minute's share is kept already"
            return Receipt(IngestOutcome.NO_SECRET, status, reason=reason, detail=detail)
        answer = provider.refusal and replace(provider.refusal, status=status)
        return Receipt(IngestOutcome.REJECTED, status, reason=reason, detail=detail, answer=answer)


def _receipt(
    provider: Provider,
    outcome: IngestOutcome,
    status: int,
    identity: Identity,
    verified: Verified,
    handlers: tuple[str, ...] = (),
) -> Receipt:
    answer = provider.acknowledgement if status < 300 else None
    return Receipt(
        outcome,
        answer.status if answer else status,
        event_id=dedupe_key(identity.event_id),
        type=identity.type,
        secret=verified.secret,
        handlers=handlers,
        answer=answer,
        retry=identity.retry,
        retry_reason=identity.retry_reason,
    )
