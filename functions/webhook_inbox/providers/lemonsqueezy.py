"""Lemon Squeezy: `X-Signature: <hex>` over the body, which has neither id nor sending time.

The type is also in a header, which is not signed: the body's type is used first.
Source: webhook-co's configuration; Lemon Squeezy's page on webhook requests.
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
    "lemonsqueezy",
    Hmac(headers=("x-signature",)),
    Naming(id=(content_hash,), type=(in_json("meta.event_name"), header("x-event-name"))),
    accepted_status=200,
    facts=Facts(
        title="Lemon Squeezy",
        scheme="HMAC-SHA256 over the body, hex",
        event_id="the body's hash: no id is documented",
        retries="3: after 5, 25 and 125 s",
        key_from="the signing secret that you choose in the webhook's form",
    ),
)
