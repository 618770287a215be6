"""Clerk: Standard Webhooks, sent by Svix under its header names.

Source: svix/svix-webhooks; hookdeck's notes.
"""

from typing import Final

from webhook_inbox.domain.provider import Facts
from webhook_inbox.providers.schemes.standard_webhooks import SVIX, WEBHOOK, standard

PROVIDER: Final = standard(
    "clerk",
    SVIX,
    WEBHOOK,
    facts=Facts(
        title="Clerk",
        scheme="Standard Webhooks: HMAC-SHA256 over `{id}.{timestamp}.{body}`, base64",
        window="5 minutes",
        event_id="`svix-id`",
        answer_within="15 s",
        retries="7: after 5 s, 5 and 30 minutes, 2, 5, 10 and 10 hours",
        key_from="`whsec_…` of the endpoint, on the dashboard's Webhooks page",
    ),
)
