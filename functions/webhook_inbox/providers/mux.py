"""Mux: `Mux-Signature: t=<seconds>,v1=<hex>` over `{t}.{body}`.

Mux's SDK rejects an age above 5 minutes and accepts any time in the future; this provider does not.
Source: @mux/mux-node 15 `resources/webhooks`.
"""

from typing import Final

from webhook_inbox.domain.provider import Facts
from webhook_inbox.providers.schemes.builder import build_provider
from webhook_inbox.providers.schemes.identity.event_identity import Naming, in_json
from webhook_inbox.providers.schemes.signatures.header_formats import Pairs
from webhook_inbox.providers.schemes.signatures.hmac import Hmac
from webhook_inbox.providers.schemes.signatures.signed_content import Template
from webhook_inbox.providers.schemes.signatures.tolerance import Window

PROVIDER: Final = build_provider(
    "mux",
    Hmac(
        headers=("mux-signature",),
        layout=Pairs("v1", "t"),
        signs=Template.parse("{timestamp}.{body}"),
        window=Window(),
    ),
    Naming(id=(in_json("id"),), type=(in_json("type"),), occurred_at=(in_json("created_at"),)),
    # Lists the attempts of this delivery.
    volatile=("attempts",),
    facts=Facts(
        title="Mux",
        scheme="HMAC-SHA256 over `{timestamp}.{body}`, hex",
        window="5 minutes",
        event_id="`id`",
        key_from="the webhook's signing secret, in the environment's settings",
    ),
)
