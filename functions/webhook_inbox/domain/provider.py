"""The interface of a provider module: verify, identify, split and answer deliveries."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final, Literal, Protocol

from webhook_inbox.domain.errors import Reason
from webhook_inbox.domain.model import Delivery, TypeDoubt
from webhook_inbox.domain.ports import Fetch

# An invalid signature is 401, an unverifiable delivery 400; a provider may differ.
STATUSES: Final[Mapping[Reason, int]] = {
    Reason.MISSING_SIGNATURE: 401,
    Reason.INVALID_SIGNATURE: 401,
    Reason.MALFORMED: 400,
    Reason.STALE: 400,
    Reason.FUTURE: 400,
    Reason.MISSING_EVENT_ID: 400,
    Reason.NO_SECRET: 503,
    Reason.KEY_UNAVAILABLE: 503,
    Reason.UNKNOWN_KEY: 401,
    Reason.NOT_ENROLLING: 403,
    Reason.CONTESTED_ENROLMENT: 403,
}
PLAIN_TEXT: Final = "text/plain; charset=utf-8"


@dataclass(frozen=True, slots=True)
class Verified:
    """A live secret verified the delivery.

    `secret` is its position (0: current, 1: previous), `signature` the signature that matched,
    `content` the bytes that it covers, `signed_at` the signed time, if the scheme has one, `agent`
    the caller's agent, or "".

    `content` is the same for every delivery that the signature verifies, however its headers, its
    body or the signature itself are written. If a credential covers nothing, it is the body.
    """

    secret: int
    signature: str
    content: bytes
    signed_at: datetime | None = None
    agent: str = ""


@dataclass(frozen=True, slots=True)
class Identity:
    """The id that an event is deduplicated by, its type, and its time.

    `retry` is the provider's retry count (0: first attempt), None if not sent; `retry_reason` is
    the provider's text. `doubt` says why the type is not certain, None if it is. `skimmed` is True
    if the type was sought at the edges of a large body only, which shows no error between them.
    """

    event_id: str
    type: str
    occurred_at: datetime | None = None
    retry: int | None = None
    retry_reason: str = ""
    doubt: TypeDoubt | None = None
    skimmed: bool = False


class Identify(Protocol):
    """Returns the identity of a verified delivery; raises only Rejected."""

    def __call__(self, delivery: Delivery, *, parsed: bool = False) -> Identity:
        """Returns the identity; `parsed` requires that a body that is read is parsed as a whole."""


@dataclass(frozen=True, slots=True)
class Answer:
    """The HTTP answer to a handshake, or a provider-specific answer.

    `visit` is a URL of the provider that must be fetched before this is sent.
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
    """The input of `sign`: event id, type and body."""

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
    """A provider's facts for operators; the source of `docs/providers.md`.

    Attributes:
        title: the provider's name.
        scheme: a summary of the signature.
        body: the signed part of the body: whole, partly or none.
        window: the maximum age of a delivery.
        event_id: the id that an event is deduplicated by.
        unsigned: the unsigned headers that its id or type is taken from, in backticks; "" for none.
        handshake: the endpoint validation.
        answer_within: its response timeout.
        retries: its retry schedule.
        key_from: where the secret is shown, and its origin.
        resend: how to resend one event from the provider.
    """

    title: str
    scheme: str
    body: Literal["whole", "partly", "none"] = "whole"
    window: str = "none"
    event_id: str
    unsigned: str = ""
    handshake: str = "none"
    answer_within: str = "not documented"
    retries: str = "not documented"
    key_from: str
    resend: str = "not documented"


@dataclass(frozen=True, slots=True, kw_only=True)
class Provider:
    """One provider's scheme.

    Attributes:
        name: the value of `provider` in inbox.toml.
        verify: (delivery, live secrets) to Verified; raises only Rejected. Times are compared
            with the delivery's `received_at`. If the provider publishes its key, the fetched
            text replaces the secrets.
        identify: verified delivery to Identity; see `Identify`.
        sign: (sample, secret, now) to the headers of a delivery, content type included; for
            `webhookctl send` and tests.
        compose: like `sign`, if body or query depend on the signature.
        pair: makes (input of `sign`, input of `verify`), if the two differ.
        precheck: (delivery, keys) checks what needs no key: the form of the signature, the claims,
            the signed time; and, if keys are given, that one of them may be meant. Raises only
            Rejected. An unknown key is fetched only after it.
        needs_secret: False if no secret is shared with the provider.
        fetches: (delivery, live secrets) to the key request, its host pinned, or to None if the
            secrets verify the delivery; raises only Rejected. If the delivery names the key, the
            request says so (`chosen_by_sender`).
        greet: (delivery of any method, live secrets) to the answer to an unsigned endpoint
            validation, or None.
        handshake: (verified delivery, its secret) to the answer to a challenge, or None for an
            event.
        offer: delivery to the secret that the provider delivers with it, or None.
        batch: verified delivery to one delivery per event, or None if it is a single event;
            raises Rejected if it holds none.
        window: the maximum age of the signed time; None if it is not checked.
        guard: (verification, the declared patterns that the type matches) to the signed content
            that must not run twice under another id, or b"" for none; None if the signed content
            determines the id.
        guards_ignored: True if a captured signature may fit another body or type: its content is
            then guarded for types that are not stored as well.
        canonical: delivery to the bytes of its fingerprint, if its scheme does not sign the body
            as it was sent; None if it does.
        volatile: JSON fields, by dotted path, that change between retries of one event.
        kept_headers: lower-case names stored with the event, beside the general ones.
        signature_headers: lower-case names that `verify` reads; stored with a rejected delivery,
            for re-verification, and with nothing else (G10).
        token_headers: those with a bearer token: stored as a keyed hash only.
        token_fields: names of query fields with a bearer token.
        token_members: names of JSON members, anywhere in the body, with a bearer token or a list
            of them. An event is named and stored without them.
        tokens: secret to all values of its token headers, if more than a sample's.
        statuses: HTTP status for each reason of a rejection.
        conflict_status: HTTP status for a known id with other content (G7).
        accepted_status: HTTP status for an accepted event.
        acknowledgement: the answer to every event that is not rejected, instead of the default.
        refusal: the answer's body for a rejected delivery, instead of the default.
        retries: False if it never repeats a delivery by itself, so that a duplicate was requested.
        facts: the provider's facts.
    """

    name: str
    verify: Callable[[Delivery, Sequence[str]], Verified]
    identify: Identify
    sign: Callable[[Sample, str, datetime], dict[str, str]]
    compose: Callable[[Sample, str, datetime], Sent] | None = None
    pair: Callable[[], tuple[str, str]] | None = None
    precheck: Callable[[Delivery, Sequence[str]], None] = lambda *_: None
    needs_secret: bool = True
    fetches: Callable[[Delivery, Sequence[str]], Fetch | None] | None = None
    greet: Callable[[Delivery, Sequence[str]], Answer | None] | None = None
    handshake: Callable[[Delivery, str], Answer | None] | None = None
    offer: Callable[[Delivery], Offer | None] | None = None
    batch: Callable[[Delivery], Sequence[Delivery] | None] | None = None
    window: timedelta | None = None
    guard: Callable[[Verified, Sequence[str]], bytes] | None = None
    guards_ignored: bool = False
    canonical: Callable[[Delivery], bytes] | None = None
    volatile: tuple[str, ...] = ()
    kept_headers: frozenset[str] = frozenset()
    signature_headers: frozenset[str] = frozenset()
    token_headers: frozenset[str] = frozenset()
    token_fields: frozenset[str] = frozenset()
    token_members: frozenset[str] = frozenset()
    tokens: Callable[[str], Sequence[str]] | None = None
    statuses: Mapping[Reason, int] = field(default_factory=lambda: STATUSES)
    conflict_status: int = 409
    accepted_status: int = 202
    acknowledgement: Answer | None = None
    refusal: Answer | None = None
    retries: bool = True
    facts: Facts | None = None

    @property
    def bears_tokens(self) -> bool:
        """True if a delivery contains a reusable credential."""
        return bool(self.token_headers or self.token_fields or self.token_members)

    def send(self, sample: Sample, secret: str, now: datetime) -> Sent:
        """Returns the sample as the provider would send it; raises ConfigurationError."""
        if self.compose is not None:
            return self.compose(sample, secret, now)
        return Sent(self.sign(sample, secret, now), sample.body)
