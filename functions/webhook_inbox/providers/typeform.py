"""Typeform: `Typeform-Signature: sha256=<base64>` over the body; base64 in spite of the prefix.

Responses 404 and 410 disable a webhook; the inbox sends neither.
Source: hookdeck's notes on Typeform; webhook-co's provider.
"""

from typing import Final

from webhook_inbox.domain.provider import Facts
from webhook_inbox.providers.schemes.builder import build_provider
from webhook_inbox.providers.schemes.identity.event_identity import Naming, in_json
from webhook_inbox.providers.schemes.signatures.encodings import base64
from webhook_inbox.providers.schemes.signatures.header_formats import Whole
from webhook_inbox.providers.schemes.signatures.hmac import Hmac

PROVIDER: Final = build_provider(
    "typeform",
    Hmac(headers=("typeform-signature",), layout=Whole("sha256="), encoding=base64),
    Naming(
        id=(in_json("event_id"),),
        type=(in_json("event_type"),),
        occurred_at=(in_json("form_response.submitted_at"),),
    ),
    facts=Facts(
        title="Typeform",
        scheme="HMAC-SHA256 over the body, base64 after `sha256=`",
        event_id="`event_id`",
        retries="429, 408, 503 and 423 every 2 to 3 minutes for 10 hours, others about 5 times;"
        " 404 and 410 disable the webhook",
        key_from="free text that you choose in the webhook's settings",
    ),
)
