"""Signatures that stand in the body they sign, as a provider sends them."""

import json
from collections.abc import Mapping
from datetime import datetime

from webhook_inbox.domain.model import Delivery
from webhook_inbox.domain.provider import Sent
from webhook_inbox.providers.schemes.signatures.base import Signed


def sealed(
    scheme: Signed,
    message: Mapping[str, object],
    field: str,
    *,
    headers: Mapping[str, str],
    secret: str,
    now: datetime,
) -> Sent:
    """Returns a delivery of a JSON message that carries its signature in a field.

    Raises:
        ConfigurationError: the secret is not of the scheme's form.
    """
    body = json.dumps(message).encode()
    delivery = Delivery("it", "POST", "/webhooks/it", "", headers, body, now)
    signature = scheme.signature(secret, scheme.contents(delivery, "")[0])
    return Sent(headers, json.dumps({**message, field: signature}).encode())
