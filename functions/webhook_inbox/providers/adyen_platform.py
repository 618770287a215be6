"""Adyen's webhooks for platforms and management: `HmacSignature: <base64>` over the body.

The signature is in a header and covers the whole body, unlike in payment webhooks. The key is hex
and the answer `[accepted]` in both. Events have no id.
Source: Adyen/adyen-python-api-library `util.py`, `test/UtilTest.py`; docs.adyen.com
`webhooks/troubleshoot`.
"""

from typing import Final

from webhook_inbox.domain.provider import Answer, Facts
from webhook_inbox.providers.schemes.builder import build_provider
from webhook_inbox.providers.schemes.identity.event_identity import Naming, content_hash, in_json
from webhook_inbox.providers.schemes.signatures import keys
from webhook_inbox.providers.schemes.signatures.encodings import base64
from webhook_inbox.providers.schemes.signatures.hmac import Hmac

PROVIDER: Final = build_provider(
    "adyen-platform",
    Hmac(headers=("hmacsignature",), encoding=base64, key=keys.of_part("hmac", keys.hexadecimal)),
    Naming(
        id=(content_hash,),
        type=(in_json("type"),),
        occurred_at=(in_json("timestamp"), in_json("createdAt")),
    ),
    acknowledgement=Answer(200, b"[accepted]"),
    facts=Facts(
        title="Adyen (platforms and management)",
        scheme="HMAC-SHA256 over the body, base64; key in hex",
        event_id="the body's hash: none is documented",
        handshake="none; every answer is `[accepted]`",
        answer_within="10 s",
        retries="3 at once, then every 2 minutes to 8 hours for 30 days",
        key_from="the HMAC key, generated on the webhook's page of the Customer Area",
    ),
)
