"""Finch: Standard Webhooks under other header names; the secret is base64 without a prefix.

Source: finch-api (PyPI) `resources/webhooks.py`, `tests/api_resources/test_webhooks.py`.
"""

from typing import Final

from webhook_inbox.domain.provider import Facts
from webhook_inbox.providers.schemes.signatures import keys
from webhook_inbox.providers.schemes.standard_webhooks import Names, standard

PROVIDER: Final = standard(
    "finch",
    Names("finch-event-id", "finch-timestamp", "finch-signature"),
    key=keys.base64,
    type_at="event_type",
    facts=Facts(
        title="Finch",
        scheme="Standard Webhooks: HMAC-SHA256 over `{id}.{timestamp}.{body}`, base64",
        window="5 minutes",
        event_id="`Finch-Event-Id`",
        key_from="the webhook secret: base64 without a prefix",
    ),
)
