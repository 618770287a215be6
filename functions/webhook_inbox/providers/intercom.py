"""Intercom: `X-Hub-Signature: sha1=<hex>` over the body; elsewhere this header is SHA-256.

A signed `ping`, with or without an id, is sent when topics are saved and by the API at any time.
The URL is probed with HEAD.
Source: intercom/intercom-webhooks, its Node and Ruby samples; Intercom's pages on setting up
webhooks, on pinging a subscription and on webhook notifications.
"""

from typing import Final

from webhook_inbox.domain.json_path import text_at
from webhook_inbox.domain.model import Delivery
from webhook_inbox.domain.provider import Answer, Facts
from webhook_inbox.providers.schemes.builder import build_provider
from webhook_inbox.providers.schemes.handshakes import EMPTY, probed
from webhook_inbox.providers.schemes.identity.event_identity import Naming, in_json, repeats
from webhook_inbox.providers.schemes.signatures.header_formats import Whole
from webhook_inbox.providers.schemes.signatures.hmac import Hmac


def _ping(delivery: Delivery, _: str) -> Answer | None:
    return EMPTY if text_at(delivery, "topic") == "ping" else None


PROVIDER: Final = build_provider(
    "intercom",
    Hmac(headers=("x-hub-signature",), layout=Whole("sha1="), algorithm="sha1"),
    Naming(
        id=(in_json("id"),),
        type=(in_json("topic"),),
        occurred_at=(in_json("created_at"),),
        retry=(repeats(in_json("delivery_attempts")),),
    ),
    greet=probed("HEAD"),
    handshake=_ping,
    # These describe the delivery, not the event.
    volatile=("delivered_at", "delivery_attempts", "delivery_status"),
    facts=Facts(
        title="Intercom",
        scheme="HMAC-SHA1 over the body, hex",
        event_id="`id`",
        handshake="HEAD tries the URL; a signed `ping` when topics are saved",
        retries="1,000 errors in a row pause deliveries for 15 minutes; 7 days of errors suspend"
        " those of a private app",
        key_from="the app's client secret, on its Basic information page",
    ),
)
