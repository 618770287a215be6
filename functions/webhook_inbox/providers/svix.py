"""Svix, which sends the webhooks of many providers: Standard Webhooks under its own header names.

Source: svix/svix-webhooks, whose libraries accept `webhook-…` for the same headers; svix/svix-docs
`retries.mdx`.
"""

from typing import Final

from webhook_inbox.domain.provider import Facts
from webhook_inbox.providers.schemes.standard_webhooks import SVIX, WEBHOOK, standard

PROVIDER: Final = standard(
    "svix",
    SVIX,
    WEBHOOK,
    facts=Facts(
        title="Svix",
        scheme="Standard Webhooks: HMAC-SHA256 or Ed25519 over `{id}.{timestamp}.{body}`, base64",
        window="5 minutes",
        event_id="`svix-id`",
        answer_within="15 s",
        retries="7: after 5 s, 5 and 30 minutes, 2, 5, 10 and 10 hours",
        key_from="`whsec_…` of the endpoint, in the sender's portal",
    ),
)
