"""Resend: Standard Webhooks, sent by Svix under its header names.

Resend's library ignores the versions of signatures; here only `v1` counts.
Source: resend (PyPI) `webhooks/_webhooks.py`; svix/svix-docs `retries.mdx`.
"""

from typing import Final

from webhook_inbox.domain.provider import Facts
from webhook_inbox.providers.schemes.standard_webhooks import SVIX, WEBHOOK, standard

PROVIDER: Final = standard(
    "resend",
    SVIX,
    WEBHOOK,
    occurred_at="created_at",
    facts=Facts(
        title="Resend",
        scheme="Standard Webhooks: HMAC-SHA256 over `{id}.{timestamp}.{body}`, base64",
        window="5 minutes",
        event_id="`svix-id`",
        answer_within="15 s",
        retries="7: after 5 s, 5 and 30 minutes, 2, 5, 10 and 10 hours",
        key_from="`whsec_…` of the webhook, on the dashboard's Webhooks page",
        resend="the event's Replay on the dashboard, or `POST /webhooks/{id}/events/{id}/replay`",
    ),
)
