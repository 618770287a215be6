"""DocuSign Connect: `X-DocuSign-Signature-1` to `-100`, base64 over the body, one for each key.

Any one of them is sufficient. An envelope has the same event once for each recipient, so the time
is part of the event id. An XML body is identified by its hash.
Source: webhook-co's provider, hookdeck's notes; developers.docusign.com
`connectevents/retryforenvelopes`.
"""

from typing import Final

from webhook_inbox.domain.provider import Facts
from webhook_inbox.providers.schemes.builder import build_provider
from webhook_inbox.providers.schemes.identity.event_identity import (
    Naming,
    content_hash,
    in_json,
    joined,
)
from webhook_inbox.providers.schemes.signatures.encodings import base64
from webhook_inbox.providers.schemes.signatures.hmac import Hmac

KEYS: Final = 100  # as many as an account can have
_ENVELOPE: Final = in_json("data.envelopeId")
_EVENT: Final = in_json("event")
_TIME: Final = in_json("generatedDateTime")

PROVIDER: Final = build_provider(
    "docusign",
    Hmac(
        headers=tuple(f"x-docusign-signature-{number}" for number in range(1, KEYS + 1)),
        every=True,
        encoding=base64,
    ),
    Naming(
        id=(joined(_ENVELOPE, _EVENT, _TIME), joined(_ENVELOPE, _EVENT), content_hash),
        type=(_EVENT,),
        occurred_at=(_TIME,),
        retry=(in_json("retryCount"),),
    ),
    volatile=("retryCount",),
    facts=Facts(
        title="DocuSign Connect",
        scheme="HMAC-SHA256 over the body, base64, one header for each key",
        event_id="`data.envelopeId`, `event` and `generatedDateTime`",
        retries="after about 5 minutes, doubling, for 15 days",
        key_from="Connect Keys, made by DocuSign in the account's settings; up to 100 are active",
        resend="`PUT …/connect/envelopes/retry_queue` in the API",
    ),
)
