"""Airtable: `X-Airtable-Content-MAC: hmac-sha256=<hex>` over the body; the key is base64.

A delivery only announces a change; the consumer fetches the payloads with its own cursor. It has
neither id nor type, and its `timestamp` is the time of the delivery.
Source: hookdeck's notes and webhook-co's configuration for Airtable.
"""

from typing import Final

from webhook_inbox.domain.provider import Answer, Facts
from webhook_inbox.providers.schemes.builder import build_provider
from webhook_inbox.providers.schemes.identity.event_identity import (
    Naming,
    content_hash,
    fixed,
    in_json,
)
from webhook_inbox.providers.schemes.signatures import keys
from webhook_inbox.providers.schemes.signatures.header_formats import Whole
from webhook_inbox.providers.schemes.signatures.hmac import Hmac

PROVIDER: Final = build_provider(
    "airtable",
    Hmac(
        headers=("x-airtable-content-mac",),
        layout=Whole("hmac-sha256="),
        key=keys.of_part("macSecretBase64", keys.base64),
    ),
    Naming(id=(content_hash,), type=(fixed("ping"),), occurred_at=(in_json("timestamp"),)),
    # Airtable takes 200 and 204, with nothing in the body.
    acknowledgement=Answer(200),
    facts=Facts(
        title="Airtable",
        scheme="HMAC-SHA256 over the body, hex after `hmac-sha256=`; key in base64",
        event_id="the body's hash: a ping has none",
        answer_within="25 s",
        retries="13 in about a day, then disabled; a webhook expires after 7 days",
        key_from="`macSecretBase64`, which the API returns once, when the webhook is created",
        resend="none: pings are empty; `GET …/webhooks/{id}/payloads` lists what changed",
    ),
)
