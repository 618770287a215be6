"""What a provider's module gives: how a delivery is verified, named and answered."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from webhook_inbox.errors import Reason
from webhook_inbox.model import Delivery

# A wrong signature is 401, a delivery that cannot be judged 400; a provider may differ.
STATUSES: Final[Mapping[Reason, int]] = {
    Reason.MISSING_SIGNATURE: 401,
    Reason.INVALID_SIGNATURE: 401,
    Reason.MALFORMED: 400,
    Reason.STALE: 400,
    Reason.FUTURE: 400,
    Reason.MISSING_EVENT_ID: 400,
    Reason.NO_SECRET: 503,
}


@dataclass(frozen=True, slots=True)
class Verified:
    """A delivery's signature was made with a live secret.

    `secret` is that secret's place in the sequence (0: current, 1: previous), `signature` the
    signature that matched, `signed_at` the signed time where the scheme has one.
    """

    secret: int
    signature: str
    signed_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Identity:
    """An event's name: what it is deduplicated by, its type, and when the provider made it."""

    event_id: str
    type: str
    occurred_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """The HTTP answer to a handshake."""

    status: int
    body: bytes = b""
    content_type: str = "text/plain; charset=utf-8"


@dataclass(frozen=True, slots=True)
class Sample:
    """What `sign` is given to make a delivery of: the provider's id, type and body."""

    event_id: str
    type: str
    body: bytes


@dataclass(frozen=True, slots=True)
class Recipe:
    """One provider's scheme.

    Attributes:
        name: as `provider = "…"` in inbox.toml spells it.
        verify: (delivery, live secrets) to Verified; raises Rejected and nothing else. The
            delivery's `received_at` is the time it is judged at.
        identify: verified delivery to Identity; raises Rejected and nothing else.
        sign: (sample, secret, now) to the headers a provider would send, content type
            included; for `webhookctl send` and tests.
        handshake: verified delivery to the answer of a challenge, or None if it is an event.
        guard: verified delivery and identity to the signed content that must not run twice
            under another id; None where id or time are signed.
        volatile: top-level JSON fields that change between honest retries of one event.
        kept_headers: lower-case names stored with the event, beside the general ones.
        signature_headers: lower-case names that `verify` reads; stored with a delivery that
            could not be verified, so that it can be later, and with nothing else (G10).
        statuses: HTTP status for each reason of a rejection.
        conflict_status: HTTP status for a known id with other content (G7).
        accepted_status: HTTP status for an accepted event.
    """

    name: str
    verify: Callable[[Delivery, Sequence[str]], Verified]
    identify: Callable[[Delivery], Identity]
    sign: Callable[[Sample, str, datetime], dict[str, str]]
    handshake: Callable[[Delivery], Answer | None] | None = None
    guard: Callable[[Delivery, Identity], bytes] | None = None
    volatile: tuple[str, ...] = ()
    kept_headers: frozenset[str] = frozenset()
    signature_headers: frozenset[str] = frozenset()
    statuses: Mapping[Reason, int] = field(default_factory=lambda: STATUSES)
    conflict_status: int = 409
    accepted_status: int = 202
