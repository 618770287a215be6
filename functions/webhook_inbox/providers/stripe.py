"""Stripe: `Stripe-Signature: t=<seconds>,v1=<hex>`, more `v1` during a secret rotation.

Source: stripe-python `_webhook.py`, which accepts any time in the future (this provider does not);
docs.stripe.com `webhooks`.
"""

from typing import Final

from webhook_inbox.domain.provider import Facts
from webhook_inbox.providers.schemes.builder import build_provider
from webhook_inbox.providers.schemes.identity.event_identity import Naming, in_json
from webhook_inbox.providers.schemes.signatures.header_formats import Pairs
from webhook_inbox.providers.schemes.signatures.hmac import Hmac
from webhook_inbox.providers.schemes.signatures.signed_content import Template
from webhook_inbox.providers.schemes.signatures.tolerance import Window

# The secret's `whsec_…` is the key as text; no part of it is base64.
SCHEME: Final = Hmac(
    headers=("stripe-signature",),
    layout=Pairs(signature="v1", timestamp="t"),
    signs=Template.parse("{timestamp}.{body}"),
    window=Window(),
)

PROVIDER: Final = build_provider(
    "stripe",
    SCHEME,
    Naming(id=(in_json("id"),), type=(in_json("type"),), occurred_at=(in_json("created"),)),
    sign=lambda *sample: SCHEME.sign(*sample) | {"content-type": "application/json; charset=utf-8"},
    # Counts the endpoints that have not answered yet, so a retry may carry another number.
    volatile=("pending_webhooks",),
    facts=Facts(
        title="Stripe",
        scheme="HMAC-SHA256 over `{timestamp}.{body}`, hex",
        window="5 minutes",
        event_id="`id`",
        handshake="none",
        retries="live: up to 3 days, exponential; sandbox: 3 in a few hours",
        key_from="`whsec_…` of the endpoint, in the dashboard",
        resend="`stripe events resend`, or the dashboard",
    ),
)
