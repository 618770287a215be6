"""Square: `x-square-hmacsha256-signature: <base64>` over the notification URL and the body.

The URL is the one in the subscription: set `url` if a proxy or custom domain changes the address
that a request shows. Square's libraries reject an empty body. The older `x-square-signature` is
SHA-1 and never counts.
Source: square/square-python-sdk `webhooks_helper.py` and its tests; square/square-nodejs-sdk.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from webhook_inbox.domain.errors import Reason, Rejected
from webhook_inbox.domain.model import Delivery
from webhook_inbox.domain.provider import Facts, Provider, Verified
from webhook_inbox.providers.schemes.builder import build_provider
from webhook_inbox.providers.schemes.generic import settings as given
from webhook_inbox.providers.schemes.identity.event_identity import Naming, header, in_json
from webhook_inbox.providers.schemes.signatures.encodings import base64
from webhook_inbox.providers.schemes.signatures.hmac import Hmac
from webhook_inbox.providers.schemes.signatures.signed_content import Template

SETTINGS: Final = frozenset({"url"})
EXAMPLE: Final = {"url": "https://inbox.example/webhooks/square"}
NAMING: Final = Naming(
    id=(in_json("event_id"),),
    type=(in_json("type"),),
    occurred_at=(in_json("created_at"),),
    retry=(header("square-retry-number"),),
    retry_reason=(header("square-retry-reason"),),
)
FACTS: Final = Facts(
    title="Square",
    scheme="HMAC-SHA256 over URL and body, base64",
    event_id="`event_id`",
    key_from="the subscription's signature key, in the Developer Console",
)


def provider(settings: Mapping[str, Any]) -> Provider:
    """Returns Square's provider; `url` is the notification URL without its query."""
    scheme = Hmac(
        headers=("x-square-hmacsha256-signature",),
        signs=Template.parse("{url}{body}"),
        encoding=base64,
        url=given.public_url(settings),
    )

    def verify(delivery: Delivery, secrets: Sequence[str]) -> Verified:
        verified = scheme.verify(delivery, secrets)
        if not delivery.body:
            raise Rejected(Reason.INVALID_SIGNATURE, "Square never signs an empty body")
        return verified

    # No end of a JSON object is a JSON object, so none of the body can be moved into the URL.
    return build_provider("square", scheme, NAMING, facts=FACTS, verify=verify, guard=None)
