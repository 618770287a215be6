"""Standard Webhooks of any sender, under the specification's header names or Svix's.

`whsec_…` secrets verify `v1`, `whpk_…` public keys `v1a`.
Source: standard-webhooks/standard-webhooks `spec/standard-webhooks.md` and `libraries/python`;
svix-server `worker.rs`.
"""

from typing import Final

from webhook_inbox.domain.provider import Facts
from webhook_inbox.providers.schemes.standard_webhooks import SVIX, WEBHOOK, standard

PROVIDER: Final = standard(
    "standard-webhooks",
    WEBHOOK,
    SVIX,
    facts=Facts(
        title="Standard Webhooks",
        scheme="HMAC-SHA256 or Ed25519 over `{id}.{timestamp}.{body}`, base64",
        window="5 minutes",
        event_id="`webhook-id`",
        handshake="none",
        answer_within="15 to 30 s",
        retries="by the sender; the specification's example runs for days",
        key_from="`whsec_…`, or the public key `whpk_…`, shown by the sender",
        resend="by the sender",
    ),
)
