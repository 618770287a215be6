"""Polar: Standard Webhooks, but the key is the secret as text, without base64.

Source: @polar-sh/sdk `webhooks.ts`, which encodes the secret before the library decodes it.
"""

from typing import Final

from webhook_inbox.domain.provider import Facts
from webhook_inbox.providers.schemes.signatures import keys
from webhook_inbox.providers.schemes.standard_webhooks import WEBHOOK, standard

PROVIDER: Final = standard(
    "polar",
    WEBHOOK,
    key=keys.text,
    facts=Facts(
        title="Polar",
        scheme="Standard Webhooks with the secret's text as key: HMAC-SHA256, base64",
        window="5 minutes",
        event_id="`webhook-id`",
        answer_within="10 s",
        retries="10; disabled after 10 failures",
        key_from="the endpoint's secret; keep its prefix",
    ),
)
