"""OpenAI: Standard Webhooks. A secret without `whsec_` is the key as text.

OpenAI's library also accepts a signature without a version; here only `v1` counts.
Source: openai/openai-python `lib/_webhooks.py`, `tests/lib/test_webhooks.py`; OpenAI's guide on
webhooks.
"""

from typing import Final

from webhook_inbox.domain.provider import Facts
from webhook_inbox.providers.schemes.signatures import keys
from webhook_inbox.providers.schemes.standard_webhooks import WEBHOOK, standard


def _key(secret: str) -> bytes:
    return keys.whsec(secret) if secret.startswith("whsec_") else keys.text(secret)


PROVIDER: Final = standard(
    "openai",
    WEBHOOK,
    key=_key,
    occurred_at="created_at",
    facts=Facts(
        title="OpenAI",
        scheme="Standard Webhooks: HMAC-SHA256 over `{id}.{timestamp}.{body}`, base64",
        window="5 minutes",
        event_id="`webhook-id`",
        answer_within="a few seconds",
        retries="for up to 72 hours, exponential",
        key_from="the webhook's secret, `whsec_…`",
    ),
)
