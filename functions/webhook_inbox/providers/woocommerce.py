"""WooCommerce: `X-WC-Webhook-Signature: <base64>` over the body; id and topic are not signed.

When a webhook is saved, WooCommerce sends an unsigned form, `webhook_id=<number>`. Times in bodies
are UTC without an offset.
Source: hookdeck/webhook-skills `woocommerce-webhooks`; WooCommerce's page on webhooks.
"""

import re
from collections.abc import Sequence
from typing import Final

from webhook_inbox.domain.model import Delivery
from webhook_inbox.domain.provider import Answer, Facts
from webhook_inbox.providers.schemes.builder import build_provider, patterns_and_content
from webhook_inbox.providers.schemes.handshakes import EMPTY
from webhook_inbox.providers.schemes.identity.event_identity import Naming, header, in_json, utc
from webhook_inbox.providers.schemes.signatures.encodings import base64
from webhook_inbox.providers.schemes.signatures.hmac import Hmac

SIGNATURE: Final = "x-wc-webhook-signature"
PING: Final = re.compile(rb"webhook_id=[0-9]{1,20}")


def _ping(delivery: Delivery, _: Sequence[str]) -> Answer | None:
    """Answers an unsigned form with only a webhook's number; events are signed JSON."""
    unsigned = SIGNATURE not in delivery.headers
    if delivery.method == "POST" and unsigned and PING.fullmatch(delivery.body):
        return EMPTY
    return None


PROVIDER: Final = build_provider(
    "woocommerce",
    Hmac(headers=(SIGNATURE,), encoding=base64),
    Naming(
        id=(header("x-wc-webhook-delivery-id"),),
        type=(header("x-wc-webhook-topic"),),
        occurred_at=(utc(in_json("date_modified_gmt")), utc(in_json("date_created_gmt"))),
    ),
    retries=False,
    kept_headers=frozenset({"x-wc-webhook-id", "x-wc-webhook-source"}),
    greet=_ping,
    # One order gives `created` and `updated` with the same body.
    guard=patterns_and_content,
    guards_ignored=False,  # an ignored topic must not keep the others out
    facts=Facts(
        title="WooCommerce",
        scheme="HMAC-SHA256 over the body, base64",
        event_id="`X-WC-Webhook-Delivery-ID`",
        unsigned="id `X-WC-Webhook-Delivery-ID`, type `X-WC-Webhook-Topic`",
        handshake="`webhook_id=…` as an unsigned form, answered with 200",
        retries="none; five failures in a row disable the webhook",
        key_from="the webhook's secret, in WooCommerce's advanced settings",
    ),
)
