"""Onfido: `X-SHA2-Signature: <hex>` over the body.

Events have no id: object and action identify one. If the same action happens twice to an object,
such as a check that is reopened and completed again, the second is recorded as a conflict.
Source: onfido-python 6 `webhook_event_verifier.py`.
"""

from typing import Final

from webhook_inbox.domain.provider import Facts
from webhook_inbox.providers.schemes.builder import build_provider
from webhook_inbox.providers.schemes.identity.event_identity import Naming, in_json, joined
from webhook_inbox.providers.schemes.signatures.hmac import Hmac

PROVIDER: Final = build_provider(
    "onfido",
    Hmac(headers=("x-sha2-signature",)),
    Naming(
        id=(joined(in_json("payload.object.id"), in_json("payload.action")),),
        type=(in_json("payload.action"),),
        occurred_at=(in_json("payload.object.completed_at_iso8601"),),
    ),
    facts=Facts(
        title="Onfido",
        scheme="HMAC-SHA256 over the body, hex",
        event_id="`payload.object.id` and `payload.action`",
        key_from="the webhook's token, shown when it is created",
    ),
)
