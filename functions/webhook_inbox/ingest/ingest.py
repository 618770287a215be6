"""Ingest: verify a delivery, record its event once, send its runs, answer.

    delivery ── greet, enrol ── verify ── handshake ── identify ──► deduplication ──► 2xx

A new event takes two AWS calls, a duplicate older than 15 minutes one, a younger duplicate two, an
ignored one its count, and a guarded delivery one more. A batch is one event whose only run splits
it.
"""

import re
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Final

from webhook_inbox.domain.errors import NotPublished, Reason, Rejected, Unavailable
from webhook_inbox.domain.manifest import SMOKE, SMOKE_SOURCE, Manifest, SourceSpec
from webhook_inbox.domain.metrics import Duplicate
from webhook_inbox.domain.model import Delivery, StoredEvent
from webhook_inbox.domain.ports import Fetch, Ports
from webhook_inbox.domain.provider import Identity, Provider, Verified
from webhook_inbox.domain.trace import Trace
from webhook_inbox.ingest import enrolment, events
from webhook_inbox.ingest.deduplication import IdempotentReceiver, Recorded
from webhook_inbox.ingest.ignored import IgnoredTypes
from webhook_inbox.ingest.receipt import NEW, STORED, IngestOutcome, Receipt
from webhook_inbox.ingest.rejected import RejectedStore
from webhook_inbox.ingest.verification import PublishedKeys, explained, is_well_formed, verify
from webhook_inbox.ledger.schema import dedupe_key

if TYPE_CHECKING:
    from webhook_inbox.ingest.event_status import EventStatuses

# Rejections that the log and the answer tell from a delivery that failed verification.
_OUTCOMES: Final = {
    Reason.CONTESTED_ENROLMENT: IngestOutcome.CONTESTED,
    Reason.KEY_UNAVAILABLE: IngestOutcome.KEY_UNAVAILABLE,
}
# With another secret, a delivery that was rejected so may be valid. Plaid's keys are requested with
# the secret: its answer to a wrong one is that of an unknown key.
_REFRESHED: Final = frozenset({Reason.INVALID_SIGNATURE, Reason.NO_SECRET, Reason.UNKNOWN_KEY})
_HOST: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9.-]{0,252}(?::[0-9]{1,5})?", re.ASCII)


class Ingest:
    """The use case of receiving a delivery."""

    def __init__(
        self, manifest: Manifest, ports: Ports, *, providers: Callable[[SourceSpec], Provider]
    ) -> None:
        self._manifest = manifest
        self._providers = providers
        self._loaded: dict[str, Provider] = {}
        self._table = ports.table
        self._secrets = ports.secrets
        self._keys = PublishedKeys(ports.fetcher)
        self._fetcher = ports.fetcher
        self._vault = ports.vault
        self._rejected = RejectedStore(ports)
        self._ignored = IgnoredTypes(ports.table)
        self._receiver = IdempotentReceiver(manifest, ports)

    def receive(self, delivery: Delivery) -> Receipt:
        """Receives one delivery and returns the answer; never raises."""
        source = self._source(delivery.source)
        if source is None:
            return Receipt(IngestOutcome.UNKNOWN_SOURCE, 404, detail="no such source")
        try:
            receipt = self._answer(delivery, source)
        except Exception as error:  # noqa: BLE001 - a fault of this software: the provider retries
            # Loaded with the first fault.
            from webhook_inbox.domain.error_text import traceback_text  # noqa: PLC0415
            from webhook_inbox.domain.personal import PersonalTexts  # noqa: PLC0415

            personal = PersonalTexts(source.personal, delivery.body)
            told = personal.hide(self._secrets.redact(traceback_text(error)))
            receipt = Receipt(IngestOutcome.BROKEN, 503, detail=told)
        return replace(receipt, source=source.name, request_id=delivery.request_id)

    def _source(self, name: str) -> SourceSpec | None:
        """Returns a source; None if it is unknown, or the smoke test's and no smoke test runs."""
        if name != SMOKE:
            return self._manifest.sources.get(name)
        with suppress(Unavailable):
            return SMOKE_SOURCE if self._secrets.get(SMOKE_SOURCE.secret) else None
        return None

    def _answer(self, delivery: Delivery, source: SourceSpec) -> Receipt:
        provider = self._provider(source)
        try:
            try:
                return self._unsigned(delivery, source, provider) or self._signed(
                    delivery, source, provider
                )
            except Rejected as error:
                return self._refuse(delivery, source, provider, error)
        except Unavailable as error:
            return Receipt(IngestOutcome.UNAVAILABLE, 503, detail=str(error))

    def _provider(self, source: SourceSpec) -> Provider:
        """Returns a source's provider; loads it once: to build a declared scheme takes 1 ms."""
        if source.name not in self._loaded:
            self._loaded[source.name] = self._providers(source)
        return self._loaded[source.name]

    def _unsigned(
        self, delivery: Delivery, source: SourceSpec, provider: Provider
    ) -> Receipt | None:
        """Answers a request that needs no signature; returns None for any other."""
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

    def _signed(self, delivery: Delivery, source: SourceSpec, provider: Provider) -> Receipt:
        verified, secret = self._verify(delivery, source, provider)
        delivery = replace(delivery, verified=True)
        answer = provider.handshake(delivery, secret) if provider.handshake else None
        if answer is not None:
            if answer.visit is not None and (failure := self._failure_of(answer.visit)):
                return Receipt(IngestOutcome.UNCONFIRMED, 503, detail=failure)
            return Receipt(
                IngestOutcome.HANDSHAKE, answer.status, answer=answer, secret=verified.secret
            )
        identity, event, ignored = events.event_of(
            delivery, provider, verified, manifest=self._manifest, spec=source
        )
        if ignored is not None:
            self._receiver.ignore(ignored)
        if event is None:
            receipt = _receipt(provider, IngestOutcome.IGNORED, 200, identity, verified)
            self._ignored.add(source.name, identity.type, delivery.received_at)
            return replace(receipt, detail=self._ignored.flush(delivery.received_at))
        receipt = self._accept(event, provider, identity, verified)
        if not source.callers or receipt.outcome not in STORED:
            return receipt
        return replace(receipt, status_url=self._status_url(delivery, event))

    def _failure_of(self, visit: Fetch) -> str:
        """Visits a URL that confirms a subscription; returns why that failed, "" if it did not."""
        try:
            self._fetcher.fetch(visit)
        except (NotPublished, Unavailable) as error:
            return str(error)
        return ""

    def _accept(
        self, event: StoredEvent, provider: Provider, identity: Identity, verified: Verified
    ) -> Receipt:
        recorded = self._receiver.take(event)
        outcome = recorded.outcome
        handlers = event.runs if outcome is IngestOutcome.ACCEPTED else ()
        status = provider.accepted_status if outcome in NEW else 200
        if outcome is IngestOutcome.CONFLICT:
            status = provider.conflict_status
        receipt = _receipt(provider, outcome, status, identity, verified, handlers)
        trace = Trace.of(event.headers, source=event.source, event_id=event.event_id)
        kind = _kind(recorded, provider, identity)
        return replace(receipt, duplicate=kind, trace_id=trace.id)

    def _status_url(self, delivery: Delivery, event: StoredEvent) -> str:
        """Returns the URL of an event's status, "" where none can be made: the event is stored."""
        base = _base_url(delivery.headers.get("host", ""))
        token = ""
        with suppress(Unavailable):
            if base:
                token = self.statuses.token(event.source, event.event_id, event.received_at)
        return f"{base}/status/{token}" if token else ""

    @cached_property
    def statuses(self) -> "EventStatuses":
        """The status URLs; loaded at the first one, since providers get none."""
        from webhook_inbox.ingest.event_status import EventStatuses  # noqa: PLC0415

        return EventStatuses(self._table, self._secrets)

    def _verify(
        self, delivery: Delivery, source: SourceSpec, provider: Provider
    ) -> tuple[Verified, str]:
        """Returns the verification and the secret that it was made with."""
        if not provider.needs_secret:
            return verify(provider, delivery, (), self._keys), ""
        secrets = self._secrets.get(source.secret)
        try:
            verified = verify(provider, delivery, secrets, self._keys)
        except Rejected as error:
            if error.reason not in _REFRESHED:
                raise
            # The secret may have been set or rotated within the cache's life.
            fresh = self._secrets.refresh(source.secret)
            if not fresh or fresh == secrets:
                raise
            secrets = fresh
            verified = verify(provider, delivery, secrets, self._keys)
        return verified, secrets[verified.secret]

    def _refuse(
        self, delivery: Delivery, source: SourceSpec, provider: Provider, error: Rejected
    ) -> Receipt:
        error = explained(provider, error, delivery.headers)
        status, reason, detail = provider.statuses[error.reason], str(error.reason), error.detail
        # An offer holds a secret, so it is not stored (G10). A smoke test leaves nothing behind.
        offered = provider.offer is not None and provider.offer(delivery) is not None
        well_formed = partial(self._is_well_formed, delivery, source, provider)
        stored = (
            not offered
            and source is not SMOKE_SOURCE
            and self._rejected.store(delivery, error, provider, well_formed=well_formed)
        )
        if error.reason in _OUTCOMES:
            return Receipt(_OUTCOMES[error.reason], status, reason=reason, detail=detail)
        if error.reason is Reason.NO_SECRET:
            detail += f": webhookctl secrets set {source.secret}"
            detail += (
                "; the delivery is kept" if stored else "; this minute's share is kept already"
            )
            return Receipt(IngestOutcome.NO_SECRET, status, reason=reason, detail=detail)
        answer = provider.refusal and replace(provider.refusal, status=status)
        return Receipt(IngestOutcome.REJECTED, status, reason=reason, detail=detail, answer=answer)

    def _is_well_formed(self, delivery: Delivery, source: SourceSpec, provider: Provider) -> bool:
        secrets = self._secrets.get(source.secret) if provider.needs_secret else ()
        return is_well_formed(provider, delivery, secrets, self._keys)


def _kind(recorded: Recorded, provider: Provider, identity: Identity) -> Duplicate | None:
    """Returns the kind of a duplicate, None for any other delivery; the first rule that fits.

    attack    known signed content under another id, or in other bytes (G6)
    self      its event's runs should have begun by now: its first delivery was not answered, or
              the queue has a backlog
    resend    the provider never retries by itself, or says that this is no retry
    retry     any other
    """
    if recorded.outcome is IngestOutcome.REPLAYED:
        return Duplicate.ATTACK
    if recorded.outcome is not IngestOutcome.DUPLICATE:
        return None
    if recorded.unfinished:
        return Duplicate.SELF
    resent = not provider.retries or identity.retry == 0
    return Duplicate.RESEND if resent else Duplicate.RETRY


def _base_url(host: str) -> str:
    """Returns the inbox's URL for a request's Host, under which API Gateway is reached."""
    if not _HOST.fullmatch(host):
        return ""
    local = host.partition(":")[0] in {"localhost", "127.0.0.1"}
    return f"http://{host}" if local else f"https://{host}"


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
