"""Razorpay: `X-Razorpay-Signature: <hex>` over the body; the id is in an unsigned header.

The key is the webhook's secret, not the API's. Razorpay signs a retry with the secret of the first
attempt: after a change, keep the previous secret for a day.
Source: razorpay/razorpay-python `utility.py`, `tests/test_client_utility.py`.
"""

from typing import Final

from webhook_inbox.domain.provider import Facts
from webhook_inbox.providers.schemes.builder import build_provider
from webhook_inbox.providers.schemes.identity.event_identity import (
    Naming,
    content_hash,
    header,
    in_json,
)
from webhook_inbox.providers.schemes.signatures.hmac import Hmac

PROVIDER: Final = build_provider(
    "razorpay",
    Hmac(headers=("x-razorpay-signature",)),
    Naming(
        id=(header("x-razorpay-event-id"), content_hash),
        type=(in_json("event"),),
        occurred_at=(in_json("created_at"),),
    ),
    facts=Facts(
        title="Razorpay",
        scheme="HMAC-SHA256 over the body, hex",
        event_id="`x-razorpay-event-id`, the body's hash where it is missing",
        unsigned="id `X-Razorpay-Event-Id`",
        key_from="free text that you choose with the webhook, not the API's secret",
    ),
)
