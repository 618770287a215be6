"""What a provider's module gives: how a delivery is verified, named, split and answered."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final, Literal

from webhook_inbox.domain.errors import Reason
from webhook_inbox.domain.model import Delivery
from webhook_inbox.domain.ports import Fetch

# A wrong signature is 401, a delivery that cannot be judged 400; a provider may differ.
STATUSES: Final[Mapping[Reason, int]] = {
    Reason.MISSING_SIGNATURE: 401,
    Reason.INVALID_SIGNATURE: 401,
    Reason.MALFORMED: 400,
    Reason.STALE: 400,
    Reason.FUTURE: 400,
    Reason.MISSING_EVENT_ID: 400,
    Reason.NO_SECRET: 503,
    Reason.KEY_UNAVAILABLE: 503,
    Reason.NOT_ENROLLING: 403,
}
PLAIN_TEXT: Final = "text/plain; charset=utf-8"


@dataclass(frozen=True, slots=True)
class Verified:
    """A delivery's signature was made with a live secret.

    `secret` is that secret's place in the sequence (0: current, 1: previous), `signature` the
    signature that matched, `signed_at` the signed time where the scheme has one, `agent` whose
    key it was made with where the source knows its callers apart.
    """

    secret: int
    signature: str
    signed_at: datetime | None = None
    agent: str = ""


@dataclass(frozen=True, slots=True)
class Identity:
    """An event's name: what it is deduplicated by, its type, and when the provider made it.

    `retry` counts the provider's repetitions of this delivery (0: none), None where it does
    not say; `retry_reason` is its word for why.
    """

    event_id: str
    type: str
    occurred_at: datetime | None = None
    retry: int | None = None
    retry_reason: str = ""


@dataclass(frozen=True, slots=True)
class Answer:
    """The HTTP answer to a handshake, or a provider's own form of any other answer.

    `visit` is an address at the provider that has to be fetched before this is answered.
    """

    status: int
    body: bytes = b""
    content_type: str = PLAIN_TEXT
    headers: Mapping[str, str] = field(default_factory=dict)
    visit: Fetch | None = None


@dataclass(frozen=True, slots=True)
class Offer:
    """A secret that the provider delivers, and the answer that accepts it."""

    secret: str
    answer: Answer


@dataclass(frozen=True, slots=True)
class Sample:
    """What `sign` is given to make a delivery of: the provider's id, type and body."""

    event_id: str
    type: str
    body: bytes


@dataclass(frozen=True, slots=True)
class Sent:
    """A delivery as its provider would send it: headers in lower case, body, query."""

    headers: Mapping[str, str]
    body: bytes
    query: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What a person has to know of a provider; the source of `docs/providers.md`.

    Attributes:
        title: the provider's own name.
        scheme: the signature in a few words.
        body: how much of the body it covers: whole, partly or none.
        window: how old a delivery may be.
        event_id: what an event is deduplicated by.
        handshake: what the provider asks before it sends.
        answer_within: how long it waits for an answer.
        retries: when it sends again.
        key_from: where the secret is found, and who makes it.
        resend: how one event is sent again from the provider's side.
    """

    title: str
    scheme: str
    body: Literal["whole", "partly", "none"] = "whole"
    window: str = "none"
    event_id: str
    handshake: str = "none"
    answer_within: str = "not documented"
    retries: str = "not documented"
    key_from: str
    resend: str = "not documented"


@dataclass(frozen=True, slots=True, kw_only=True)
class Provider:
    """One provider's scheme.

    Attributes:
        name: as `provider = "…"` in inbox.toml spells it.
        verify: (delivery, live secrets) to Verified; raises Rejected and nothing else. The
            delivery's `received_at` is the time it is judged at. Where the provider publishes
            its key, what was fetched stands for the secrets.
        identify: verified delivery to Identity; raises Rejected and nothing else.
        sign: (sample, secret, now) to the headers a provider would send, content type
            included; for `webhookctl send` and tests.
        compose: like `sign`, where more than headers depends on the signature.
        pair: makes (what `sign` takes, what `verify` takes), where the two differ.
        needs_secret: False where nothing secret is shared with the provider.
        fetches: (delivery, live secrets) to what has to be fetched to verify it, its host
            pinned, or to None where the secrets alone verify it; raises Rejected and nothing
            else.
        greet: (delivery of any method, live secrets) to the answer of what the provider sends
            unsigned to try an endpoint; None if it is nothing of that kind.
        handshake: (verified delivery, the secret that verified it) to the answer of a
            challenge, or None if it is an event.
        offer: delivery to the secret that the provider delivers with it, or None.
        batch: verified delivery to one delivery for each event in it, or None where it is an
            event itself; raises Rejected where it holds none.
        window: how far the signed time may lie in the past; None where none is judged.
        guard: verified delivery and identity to the signed content that must not run twice
            under another id; None where id or time are signed.
        volatile: JSON fields, by dotted path, that change between honest retries of one event.
        kept_headers: lower-case names stored with the event, beside the general ones.
        signature_headers: lower-case names that `verify` reads; stored with a delivery that
            could not be verified, so that it can be later, and with nothing else (G10).
        token_headers: those of them that hold a bearer token: kept as a keyed hash only.
        token_fields: names of query fields that hold one.
        tokens: secret to all that its token headers may hold, where that is more than a sample's.
        statuses: HTTP status for each reason of a rejection.
        conflict_status: HTTP status for a known id with other content (G7).
        accepted_status: HTTP status for an accepted event.
        acknowledgement: the answer to every event that is not refused, instead of ours.
        refusal: the body of the answer to a delivery that is refused, instead of ours.
        facts: what a person has to know.
    """

    name: str
    verify: Callable[[Delivery, Sequence[str]], Verified]
    identify: Callable[[Delivery], Identity]
    sign: Callable[[Sample, str, datetime], dict[str, str]]
    compose: Callable[[Sample, str, datetime], Sent] | None = None
    pair: Callable[[], tuple[str, str]] | None = None
    needs_secret: bool = True
    fetches: Callable[[Delivery, Sequence[str]], Fetch | None] | None = None
    greet: Callable[[Delivery, Sequence[str]], Answer | None] | None = None
    handshake: Callable[[Delivery, str], Answer | None] | None = None
    offer: Callable[[Delivery], Offer | None] | None = None
    batch: Callable[[Delivery], Sequence[Delivery] | None] | None = None
    window: timedelta | None = None
    guard: Callable[[Delivery, Identity], bytes] | None = None
    volatile: tuple[str, ...] = ()
    kept_headers: frozenset[str] = frozenset()
    signature_headers: frozenset[str] = frozenset()
    token_headers: frozenset[str] = frozenset()
    token_fields: frozenset[str] = frozenset()
    tokens: Callable[[str], Sequence[str]] | None = None
    statuses: Mapping[Reason, int] = field(default_factory=lambda: STATUSES)
    conflict_status: int = 409
    accepted_status: int = 202
    acknowledgement: Answer | None = None
    refusal: Answer | None = None
    facts: Facts | None = None

    @property
    def bears_tokens(self) -> bool:
        """Whether a delivery carries what proves its sender to whoever reads it."""
        return bool(self.token_headers or self.token_fields)

    def send(self, sample: Sample, secret: str, now: datetime) -> Sent:
        """Returns the sample as the provider would send it; raises ConfigurationError."""
        if self.compose is not None:
            return self.compose(sample, secret, now)
        return Sent(self.sign(sample, secret, now), sample.body)
