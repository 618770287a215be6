"""Shopify: `X-Shopify-Hmac-Sha256: <base64>` over the body; neither id, topic nor time is signed.

The Events product sends the same under `shopify-*` names and without an event id.
Source: @shopify/shopify-api `lib/utils/hmac-validator` and `lib/webhooks/types`; shopify.dev on
webhooks.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Final

from webhook_inbox.domain.errors import Reason, Rejected
from webhook_inbox.domain.model import Delivery
from webhook_inbox.domain.provider import STATUSES, Facts, Sample, Verified
from webhook_inbox.domain.timestamps import from_ms, to_ms
from webhook_inbox.providers.schemes.builder import build_provider, patterns_and_content
from webhook_inbox.providers.schemes.identity.event_identity import Naming, header
from webhook_inbox.providers.schemes.signatures.encodings import base64
from webhook_inbox.providers.schemes.signatures.hmac import Hmac

SCHEME: Final = Hmac(headers=("x-shopify-hmac-sha256", "shopify-hmac-sha256"), encoding=base64)
NAMING: Final = Naming(
    id=(
        # The same for every subscription and retry of an event.
        header("x-shopify-event-id", "shopify-event-id"),
        header("x-shopify-webhook-id", "shopify-webhook-id"),
    ),
    type=(header("x-shopify-topic", "shopify-topic"),),
)
_KEPT: Final = ("api-version", "event-id", "shop-domain", "topic", "triggered-at", "webhook-id")


def _verify(delivery: Delivery, secrets: Sequence[str]) -> Verified:
    if not delivery.body:
        raise Rejected(Reason.MALFORMED, "Shopify never signs an empty body")
    return SCHEME.verify(delivery, secrets)


def _sign(sample: Sample, secret: str, now: datetime) -> dict[str, str]:
    triggered_at = from_ms(to_ms(now)).isoformat(timespec="milliseconds")
    return SCHEME.sign(sample, secret, now) | {
        "x-shopify-event-id": sample.event_id,
        "x-shopify-webhook-id": f"{sample.event_id}-delivery",
        "x-shopify-topic": sample.type,
        "x-shopify-shop-domain": "example.myshopify.com",
        "x-shopify-triggered-at": triggered_at.replace("+00:00", "Z"),
    }


PROVIDER: Final = build_provider(
    "shopify",
    SCHEME,
    NAMING,
    verify=_verify,
    sign=_sign,
    # A checkout sends one body as `orders/create` and as `orders/paid`: see decision 3.
    guard=patterns_and_content,
    guards_ignored=False,  # an ignored topic must not keep the others out
    kept_headers=frozenset(f"{x}shopify-{name}" for name in _KEPT for x in ("", "x-")),
    # The review of compliance topics sends invalid signatures and expects 401.
    statuses={**STATUSES, Reason.MALFORMED: 401},
    facts=Facts(
        title="Shopify",
        scheme="HMAC-SHA256 over the body, base64",
        event_id="`X-Shopify-Event-Id`",
        unsigned="id `X-Shopify-Event-Id`, type `X-Shopify-Topic`",
        answer_within="5 s",
        retries="8 over 4 hours; then a subscription made through the Admin API is removed",
        key_from="the app's client secret; webhooks made in the admin have the store's own",
        resend="none; read what was missed through the API",
    ),
)
