"""GoCardless: `Webhook-Signature: <hex>` over the body; a body is a list of events.

Standard Webhooks uses the same header name for another format. GoCardless expects 498 for an
invalid signature.
Source: gocardless/gocardless-pro-python `webhooks.py` and its tests.
"""

from typing import Final

from webhook_inbox.domain.errors import Reason
from webhook_inbox.domain.provider import STATUSES, Facts
from webhook_inbox.providers.schemes.builder import build_provider
from webhook_inbox.providers.schemes.identity.batches import split_at
from webhook_inbox.providers.schemes.identity.event_identity import Naming, dotted, in_json
from webhook_inbox.providers.schemes.signatures.hmac import Hmac

INVALID_TOKEN: Final = 498

PROVIDER: Final = build_provider(
    "gocardless",
    Hmac(headers=("webhook-signature",)),
    Naming(
        id=(in_json("id"),),
        type=(dotted(in_json("resource_type"), in_json("action")),),
        occurred_at=(in_json("created_at"),),
    ),
    batch=split_at("events"),
    statuses={
        **STATUSES,
        Reason.INVALID_SIGNATURE: INVALID_TOKEN,
        Reason.MISSING_SIGNATURE: INVALID_TOKEN,
    },
    facts=Facts(
        title="GoCardless",
        scheme="HMAC-SHA256 over the body, hex",
        event_id="`id` of each event in the list",
        key_from="the webhook endpoint's secret, in the dashboard's developer settings",
    ),
)
