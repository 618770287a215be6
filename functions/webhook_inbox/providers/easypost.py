"""EasyPost: `X-Hmac-Signature: hmac-sha256-hex=<hex>` over the body.

The key is the secret in Unicode normalization form NFKD, which changes accented characters.
Source: EasyPost/easypost-python `util.py`; docs.easypost.com `guides/webhooks-guide`.
"""

from typing import Final

from webhook_inbox.domain.provider import Facts
from webhook_inbox.providers.schemes.builder import build_provider
from webhook_inbox.providers.schemes.identity.event_identity import Naming, in_json
from webhook_inbox.providers.schemes.signatures import keys
from webhook_inbox.providers.schemes.signatures.header_formats import Whole
from webhook_inbox.providers.schemes.signatures.hmac import Hmac

PROVIDER: Final = build_provider(
    "easypost",
    Hmac(headers=("x-hmac-signature",), layout=Whole("hmac-sha256-hex="), key=keys.nfkd),
    Naming(
        id=(in_json("id"),), type=(in_json("description"),), occurred_at=(in_json("created_at"),)
    ),
    # An event lists its deliveries, including the one to this endpoint.
    volatile=("status", "pending_urls", "completed_urls", "updated_at"),
    facts=Facts(
        title="EasyPost",
        scheme="HMAC-SHA256 over the body, hex after `hmac-sha256-hex=`",
        event_id="`id`",
        retries="after any answer but 2xx",
        key_from="the `webhook_secret` that you choose when you create the webhook",
    ),
)
