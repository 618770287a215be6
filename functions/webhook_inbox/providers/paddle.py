"""Paddle Billing: `Paddle-Signature: ts=<seconds>;h1=<hex>`, more `h1` during a secret rotation.

The window is the library's: five seconds, both ways, since every attempt is signed again. A replay
from the dashboard has the same `event_id` under another `notification_id`. Paddle Classic signs
with RSA and is not supported.
Source: PaddleHQ/paddle-python-sdk `Notifications/Verifier.py` and its tests.
"""

from datetime import timedelta
from typing import Final

from webhook_inbox.domain.provider import Facts
from webhook_inbox.providers.schemes.builder import build_provider
from webhook_inbox.providers.schemes.identity.event_identity import Naming, in_json
from webhook_inbox.providers.schemes.signatures.header_formats import Pairs
from webhook_inbox.providers.schemes.signatures.hmac import Hmac
from webhook_inbox.providers.schemes.signatures.signed_content import Template
from webhook_inbox.providers.schemes.signatures.tolerance import Window

PROVIDER: Final = build_provider(
    "paddle",
    Hmac(
        headers=("paddle-signature",),
        layout=Pairs(signature="h1", timestamp="ts", separator=";"),
        signs=Template.parse("{timestamp}:{body}"),
        window=Window(tolerance=timedelta(seconds=5)),
    ),
    Naming(
        id=(in_json("event_id"), in_json("notification_id")),
        type=(in_json("event_type"),),
        occurred_at=(in_json("occurred_at"),),
    ),
    volatile=("notification_id",),
    accepted_status=200,
    facts=Facts(
        title="Paddle Billing",
        scheme="HMAC-SHA256 over `{timestamp}:{body}`, hex",
        window="5 seconds",
        event_id="`event_id`",
        answer_within="5 s",
        retries="live: 60 in 3 days; sandbox: 3 in 15 minutes",
        key_from="`pdl_ntfset_…` of the notification destination, which Paddle makes",
    ),
)
