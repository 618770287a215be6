"""Rejected deliveries, once more: judged by today's secrets, and let in where they are valid.

    kept row ──► delivery as it came ──► verify, its time judged at arrival ──► Checked
                                                  release: event, received now ──► acceptance

Letting one in twice is harmless: the second time its event is known. So a release that was
interrupted is simply repeated. Works in an operator's hands, never in a Lambda.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from urllib.parse import urlencode

from webhook_inbox.domain.conditions import Absent, Present, every
from webhook_inbox.domain.errors import ConditionFailed, ConfigurationError, Permanent, Rejected
from webhook_inbox.domain.json_path import fields
from webhook_inbox.domain.manifest import Manifest, SourceSpec
from webhook_inbox.domain.model import Delivery, StoredEvent
from webhook_inbox.domain.ports import NOWHERE, Blobs, Change, Fetcher, Key, Table
from webhook_inbox.domain.provider import Provider, Sample, Verified
from webhook_inbox.domain.secrets import TOKEN_KEY, SecretCache
from webhook_inbox.domain.timestamps import to_ms
from webhook_inbox.ingest import events
from webhook_inbox.ingest.deduplication import IdempotentReceiver, Taken
from webhook_inbox.ingest.rejected import HASHED, HIDDEN, RejectedDelivery, hashed
from webhook_inbox.ingest.verification import PublishedKeys, verify
from webhook_inbox.ledger import payloads


class ReleaseVerdict(StrEnum):
    """What a kept delivery comes to today."""

    VALID = "valid"  # it verifies, and holds an event
    INVALID = "invalid"  # it still does not verify, or cannot be named
    CHALLENGE = "challenge"  # it verifies and is a handshake: there is no event in it
    IGNORED = "ignored"  # it verifies; its type is one that the source does not store
    LOST = "lost"  # its body is gone
    RELEASED = "released"  # it was let in before
    ACCEPTED = "accepted"  # let in now: its runs are sent
    DUPLICATE = "duplicate"  # its event had come in another delivery
    REPLAYED = "replayed"  # its content had come under another id: not run (G6)
    CONFLICT = "conflict"  # its id had come with other content: refused and kept (G7)


@dataclass(frozen=True, slots=True)
class ReverifiedDelivery:
    """What a kept delivery comes to; `reason` and `detail` say why it is not valid."""

    kept: RejectedDelivery
    verdict: ReleaseVerdict
    event: StoredEvent | None = None
    reason: str = ""
    detail: str = ""

    @property
    def event_id(self) -> str:
        """The id of the event that it holds, or was let in as; "" where there is none."""
        return self.event.event_id if self.event else self.kept.released_event_id


class Reverification:
    """Judges kept deliveries again, and lets the valid ones in.

    Args:
        manifest: the sources, and the handlers whose runs an event has.
        providers: returns a source's provider.
        table: where they are kept, and events go.
        blobs: where their bodies lie.
        secrets: today's.
        fetcher: for what providers publish.
    """

    def __init__(
        self,
        *,
        manifest: Manifest,
        providers: Callable[[SourceSpec], Provider],
        table: Table,
        blobs: Blobs,
        secrets: SecretCache,
        fetcher: Fetcher = NOWHERE,
    ) -> None:
        self._manifest = manifest
        self._providers = providers
        self._table = table
        self._blobs = blobs
        self._secrets = secrets
        self._keys = PublishedKeys(fetcher)

    def check(self, kept: RejectedDelivery) -> ReverifiedDelivery:
        """Returns what a delivery comes to today; writes nothing.

        Raises:
            Unavailable: the secrets or the body could not be read.
        """
        if kept.released_at is not None:
            return ReverifiedDelivery(kept, ReleaseVerdict.RELEASED)
        try:
            return self._judged(kept)
        except Permanent as error:
            return ReverifiedDelivery(kept, ReleaseVerdict.LOST, detail=str(error))
        except Rejected as error:
            detail = f"{error.detail}{_of_tokens(kept)}"
            return ReverifiedDelivery(
                kept, ReleaseVerdict.INVALID, reason=str(error.reason), detail=detail
            )

    def release(
        self, kept: RejectedDelivery, acceptance: IdempotentReceiver, *, by: str, now: datetime
    ) -> ReverifiedDelivery:
        """Lets a delivery in if it is valid, and notes that; otherwise does nothing.

        The event is received now: what looks after events, and how long they are kept, goes by
        that time.

        Raises:
            Unavailable: storage or queue failed; to be called again.
        """
        checked = self.check(kept)
        if checked.event is None:
            return checked
        event = replace(checked.event, received_at=now, request_id=f"rejected-{kept.id}")
        taken = acceptance.take(event)
        if taken is not Taken.CONFLICT:
            self._note(kept, event.event_id, taken, by=by, now=now)
        return ReverifiedDelivery(kept, ReleaseVerdict(taken.value), event)

    def body(self, kept: RejectedDelivery) -> bytes:
        """Returns the body; raises Unavailable, or Permanent where it is gone."""
        return payloads.unpack(kept.row, self._blobs)

    def delivery(self, kept: RejectedDelivery) -> Delivery:
        """Returns the delivery as it came, tokens that today's secrets account for included.

        Raises:
            Unavailable: the body or the secrets could not be read.
            Permanent: the body is gone.
        """
        row = kept.row
        came = Delivery(
            source=kept.source,
            method=row["method"],
            path=row["path"],
            query=row["query"],
            headers=row["headers"],
            body=self.body(kept),
            received_at=kept.received_at,
        )
        return came if _of_tokens(kept) == "" else self._opened(came)

    def _judged(self, kept: RejectedDelivery) -> ReverifiedDelivery:
        spec = self._manifest.sources[kept.source]
        provider, delivery = self._providers(spec), self.delivery(kept)
        secrets = self._live(spec, provider)
        verified = verify(provider, delivery, secrets, self._keys)
        if self._is_challenge(provider, delivery, secrets, verified):
            return ReverifiedDelivery(kept, ReleaseVerdict.CHALLENGE)
        found = events.event_of(delivery, provider, verified, manifest=self._manifest, spec=spec)
        verdict = ReleaseVerdict.IGNORED if found.event is None else ReleaseVerdict.VALID
        return ReverifiedDelivery(kept, verdict, found.event)

    def _is_challenge(
        self, provider: Provider, delivery: Delivery, secrets: tuple[str, ...], verified: Verified
    ) -> bool:
        secret = secrets[verified.secret] if secrets else ""
        return provider.handshake is not None and provider.handshake(delivery, secret) is not None

    def _live(self, spec: SourceSpec, provider: Provider) -> tuple[str, ...]:
        return self._secrets.get(spec.secret) if provider.needs_secret else ()

    def _opened(self, came: Delivery) -> Delivery:
        """Puts a token back where today's secrets say what it was: its hash tells."""
        spec = self._manifest.sources[came.source]
        provider = self._providers(spec)
        tokens = _tokens(provider, came, self._live(spec, provider))
        keys = self._secrets.get(TOKEN_KEY)

        def opened(place: str, value: str) -> str:
            if not value.startswith(HASHED):
                return value
            found = (
                token
                for key in keys
                for token in tokens
                if hashed(key, source=came.source, place=place, token=token) == value
            )
            return next(found, value)

        headers = {k: opened(k, v) for k, v in came.headers.items() if k in provider.token_headers}
        pairs = [(k, opened(k, v)) for k, v in fields(came.query)]
        return replace(
            came,
            headers={**came.headers, **headers},
            query=urlencode(pairs) if provider.token_fields else came.query,
        )

    def _note(
        self, kept: RejectedDelivery, event_id: str, taken: Taken, *, by: str, now: datetime
    ) -> None:
        told = {"released_by": by, "released_as": taken, "released_event_id": event_id}
        noted = Change(set={"released_at": to_ms(now), **told})
        key = Key(kept.row["pk"], kept.row["sk"])
        try:
            self._table.update(key, noted, when=every(Present("pk"), Absent("released_at")))
        except ConditionFailed:
            return  # Somebody else released it at the same time, or it has just expired.


def _tokens(provider: Provider, came: Delivery, secrets: tuple[str, ...]) -> list[str]:
    """Returns what the provider would send today, as it writes it, wherever it writes it."""
    found: list[str] = []
    for secret in secrets:
        try:
            sent = provider.send(Sample("", "", came.body), secret, came.received_at)
        except ConfigurationError:
            continue
        found += [v for k, v in sent.headers.items() if k in provider.token_headers]
        found += [v for k, v in fields(sent.query) if k in provider.token_fields]
        found.append(secret)
    # Last, since a secret that makes no sample may hold tokens all the same.
    return found + [
        token for secret in secrets if provider.tokens for token in provider.tokens(secret)
    ]


def _of_tokens(kept: RejectedDelivery) -> str:
    """Returns what to know of a delivery whose token was not kept as it came; "" of any other."""
    values = [*kept.row["headers"].values(), *(value for _, value in fields(kept.row["query"]))]
    if any(value.startswith(HASHED) for value in values):
        return "; of its token a hash was kept, and it is that of no token of today's"
    return "; its token was not kept" if HIDDEN in values else ""
