"""Coinbase Commerce: `X-CC-Webhook-Signature: <hex>` over the body.

The body is a delivery that contains the event. The delivery's `id`, attempt number and time change
with every retry; the event and its `id` do not.
Source: coinbase/coinbase-commerce-python `webhook.py`, `tests/test_webhook.py`.
"""

from typing import Final

from webhook_inbox.domain.provider import Facts
from webhook_inbox.providers.schemes.builder import build_provider
from webhook_inbox.providers.schemes.identity.event_identity import Naming, in_json, repeats
from webhook_inbox.providers.schemes.signatures.hmac import Hmac

PROVIDER: Final = build_provider(
    "coinbase-commerce",
    Hmac(headers=("x-cc-webhook-signature",)),
    Naming(
        id=(in_json("event.id"),),
        type=(in_json("event.type"),),
        occurred_at=(in_json("event.created_at"),),
        retry=(repeats(in_json("attempt_number")),),
    ),
    volatile=("id", "attempt_number", "scheduled_for"),
    facts=Facts(
        title="Coinbase Commerce",
        scheme="HMAC-SHA256 over the body, hex",
        event_id="`event.id`; the outer `id` is the delivery's",
        key_from="the webhook's shared secret, in the dashboard's notification settings",
    ),
)
