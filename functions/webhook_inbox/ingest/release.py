"""Re-verifies rejected deliveries with the current secrets, and releases the valid ones.

    rejected row ──► delivery ──► verify, as of its arrival ──► ReverifiedDelivery
                                        release: event, received now ──► deduplication

Releasing a delivery twice is harmless, since its event is known the second time; an interrupted
release can be repeated. Runs in the CLI only.
"""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from functools import partial
from typing import Final
from urllib.parse import urlencode

from webhook_inbox.domain.audit import Actor, AuditedAction, EventName
from webhook_inbox.domain.conditions import Absent, Present, every
from webhook_inbox.domain.errors import ConditionFailed, ConfigurationError, Permanent, Rejected
from webhook_inbox.domain.json_path import fields
from webhook_inbox.domain.manifest import Manifest, SourceSpec
from webhook_inbox.domain.model import Delivery, StoredEvent
from webhook_inbox.domain.ports import Change, Item, Key, Ports
from webhook_inbox.domain.provider import Provider, Sample
from webhook_inbox.domain.secrets import TOKEN_KEY
from webhook_inbox.domain.timestamps import to_ms
from webhook_inbox.ingest import events
from webhook_inbox.ingest.deduplication import IdempotentReceiver
from webhook_inbox.ingest.events import substituted
from webhook_inbox.ingest.receipt import IngestOutcome
from webhook_inbox.ingest.rejected import BODY, HASHED, HIDDEN, RejectedDelivery, hashed
from webhook_inbox.ingest.verification import PublishedKeys, explained, missing_headers, verify
from webhook_inbox.ledger import audit, payloads

# More than one command re-verifies by default.
REQUESTS: Final = 10_000


class ReleaseVerdict(StrEnum):
    """The result of re-verifying a rejected delivery."""

    VALID = "valid"  # it verifies and has an event
    INVALID = "invalid"  # it still does not verify, or cannot be named
    CHALLENGE = "challenge"  # it verifies and is a handshake without an event
    IGNORED = "ignored"  # it verifies; the source does not store its type
    LOST = "lost"  # its body is gone
    RELEASED = "released"  # it was released before


@dataclass(frozen=True, slots=True)
class ReverifiedDelivery:
    """A rejected delivery after re-verification.

    `verdict` is the outcome of ingest once the delivery is released; `reason` and `detail` say why
    it is invalid.
    """

    rejected: RejectedDelivery
    verdict: ReleaseVerdict | IngestOutcome
    event: StoredEvent | None = None
    reason: str = ""
    detail: str = ""

    @property
    def event_id(self) -> str:
        """The id of its event, or of the event it was released as; "" if there is none."""
        return self.event.event_id if self.event else self.rejected.released_event_id


class Reverification:
    """Re-verifies rejected deliveries, and releases the valid ones."""

    def __init__(
        self, manifest: Manifest, ports: Ports, *, providers: Callable[[SourceSpec], Provider]
    ) -> None:
        self._manifest = manifest
        self._providers = providers
        self._table = ports.table
        self._blobs = ports.blobs
        self._secrets = ports.secrets
        self._randomness = ports.randomness
        self._receiver = IdempotentReceiver(manifest, ports)
        # An operator's own search: the flood that is searched must not hide the true delivery.
        self._keys = PublishedKeys(ports.fetcher, misses=REQUESTS)

    def check(self, rejected: RejectedDelivery) -> ReverifiedDelivery:
        """Verifies a delivery with the current secrets; writes nothing.

        Raises:
            Unavailable: the secrets or the body could not be read.
        """
        if rejected.released_at is not None:
            return ReverifiedDelivery(rejected, ReleaseVerdict.RELEASED)
        try:
            return self._verify(rejected)
        except Permanent as error:
            return ReverifiedDelivery(rejected, ReleaseVerdict.LOST, detail=str(error))
        except Rejected as error:
            detail = f"{self._told(rejected, error)}{_token_remark(rejected, self._of(rejected))}"
            return ReverifiedDelivery(
                rejected, ReleaseVerdict.INVALID, reason=str(error.reason), detail=detail
            )

    def release(
        self, rejected: RejectedDelivery, *, by: Actor, reason: str, now: datetime
    ) -> ReverifiedDelivery:
        """Records the event of a delivery if it is valid; otherwise does nothing.

        The event's history names the release; the caller writes the row of the whole in the audit.

        The event's `received_at` is now: the reconciler's window and the retention start then.

        Raises:
            Unavailable: storage or queue failed; the call can be repeated.
        """
        checked = self.check(rejected)
        if checked.event is None:
            return checked
        event = replace(checked.event, received_at=now, request_id=f"rejected-{rejected.id}")
        recorded = audit.record(
            self._table,
            self._randomness,
            action=AuditedAction.RELEASE,
            by=by,
            reason=reason,
            request={"source": event.source, "rejected": rejected.id},
            event=EventName(event.source, event.event_id),
            part=True,
            now=now,
        )
        outcome = self._receiver.take(event).outcome
        recorded.conclude({outcome: 1})
        if outcome is not IngestOutcome.CONFLICT:
            self._mark_released(rejected, event.event_id, outcome, by=by, now=now)
        return ReverifiedDelivery(rejected, outcome, event)

    def body(self, rejected: RejectedDelivery) -> bytes:
        """Returns the body; raises Unavailable, or Permanent where it is gone."""
        return payloads.unpack(rejected.row, self._blobs)

    def delivery(self, rejected: RejectedDelivery) -> Delivery:
        """Returns the delivery, with each token restored that a current secret accounts for.

        Raises:
            Unavailable: the body or the secrets could not be read.
            Permanent: the body is gone.
        """
        row = rejected.row
        stored = Delivery(
            source=rejected.source,
            method=row["method"],
            path=row["path"],
            query=row["query"],
            headers=_headers(row, self._of(rejected)),
            body=self.body(rejected),
            received_at=rejected.received_at,
        )
        hidden = _token_remark(rejected, self._of(rejected))
        return self._with_tokens(stored) if hidden else stored

    def _of(self, rejected: RejectedDelivery) -> Provider:
        """Returns the provider of a delivery's source, with its current settings."""
        return self._providers(self._manifest.sources[rejected.source])

    def _told(self, rejected: RejectedDelivery, error: Rejected) -> str:
        """Returns why a delivery is invalid, with the names of the headers that were received."""
        provider = self._of(rejected)
        received = dict.fromkeys(rejected.row.get("header_names", ()), "unknown")
        headers = {**received, **_headers(rejected.row, provider)}
        absent = missing_headers(provider, error, _headers(rejected.row, provider))
        if lost := [k for k in absent if k in received and k not in rejected.row["headers"]]:
            return f"the {lost[0]} header was received, and its value was not stored"
        return explained(provider, error, headers).detail

    def _verify(self, rejected: RejectedDelivery) -> ReverifiedDelivery:
        spec = self._manifest.sources[rejected.source]
        provider, delivery = self._providers(spec), self.delivery(rejected)
        secrets = self._live(spec, provider)
        verified = verify(provider, delivery, secrets, self._keys)
        delivery = replace(delivery, verified=True)
        secret = secrets[verified.secret] if secrets else ""
        if provider.handshake is not None and provider.handshake(delivery, secret) is not None:
            return ReverifiedDelivery(rejected, ReleaseVerdict.CHALLENGE)
        found = events.event_of(delivery, provider, verified, manifest=self._manifest, spec=spec)
        verdict = ReleaseVerdict.IGNORED if found.event is None else ReleaseVerdict.VALID
        return ReverifiedDelivery(rejected, verdict, found.event)

    def _live(self, spec: SourceSpec, provider: Provider) -> tuple[str, ...]:
        return self._secrets.get(spec.secret) if provider.needs_secret else ()

    def _with_tokens(self, stored: Delivery) -> Delivery:
        """Replaces a stored hash by the token of a current secret that has this hash."""
        spec = self._manifest.sources[stored.source]
        provider = self._providers(spec)
        tokens = _tokens(provider, stored, self._live(spec, provider))

        def restored(place: str, value: str) -> str:
            if not value.startswith(HASHED):
                return value
            found = (
                token
                for key in self._secrets.keys(TOKEN_KEY)
                for token in tokens
                if hashed(key, source=stored.source, place=place, token=token) == value
            )
            return next(found, value)

        headers = {
            k: restored(k, v) for k, v in stored.headers.items() if k in provider.token_headers
        }
        pairs = [(k, restored(k, v)) for k, v in fields(stored.query)]
        body = substituted(stored.body, provider.token_members, partial(restored, BODY))
        return replace(
            stored,
            body=body if provider.token_members else stored.body,
            headers={**stored.headers, **headers},
            query=urlencode(pairs) if provider.token_fields else stored.query,
        )

    def _mark_released(
        self,
        rejected: RejectedDelivery,
        event_id: str,
        outcome: IngestOutcome,
        *,
        by: Actor,
        now: datetime,
    ) -> None:
        change = Change(
            set={
                "released_at": to_ms(now),
                "released_by": str(by),
                "released_as": str(outcome),
                "released_event_id": event_id,
            }
        )
        key = Key(rejected.row["pk"], rejected.row["sk"])
        # It fails if another operator released it at the same time, or it has just expired.
        with suppress(ConditionFailed):
            self._table.update(key, change, when=every(Present("pk"), Absent("released_at")))


def _tokens(provider: Provider, stored: Delivery, secrets: tuple[str, ...]) -> list[str]:
    """Returns the tokens that the provider could send for these secrets."""
    found: list[str] = []
    for secret in secrets:
        try:
            # No token depends on the body, which may be anything.
            sent = provider.send(Sample("", "", b"{}"), secret, stored.received_at)
        except ConfigurationError:
            continue
        found += [v for k, v in sent.headers.items() if k in provider.token_headers]
        found += [v for k, v in fields(sent.query) if k in provider.token_fields]
        found.append(secret)
    # A secret from which no sample can be made may still hold tokens.
    return found + [
        token for secret in secrets if provider.tokens for token in provider.tokens(secret)
    ]


def _headers(row: Item, provider: Provider) -> dict[str, str]:
    """Returns the stored headers, with the hash of each that the provider now reads a token in."""
    tokens = {k: v for k, v in row.get("unread_tokens", {}).items() if k in provider.token_headers}
    return {**row.get("unread_headers", {}), **tokens, **row["headers"]}


def _token_remark(rejected: RejectedDelivery, provider: Provider) -> str:
    """Returns a remark for a delivery whose token was not stored in clear; "" for any other."""
    row = rejected.row
    headers = {
        k: v for k, v in _headers(row, provider).items() if k not in row.get("unread_headers", {})
    }
    values = [*headers.values(), *(value for _, value in fields(row["query"]))]
    values.append(row.get("body_token", ""))
    if any(value.startswith(HASHED) for value in values):
        return "; only a hash of its token was stored, and no current token has that hash"
    return "; its token was not stored" if HIDDEN in values else ""
