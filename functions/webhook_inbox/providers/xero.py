"""Xero: `x-xero-signature: <base64>` over the body; a body is a list of events.

The key looks like base64 and is text. Xero first probes the endpoint with an empty list, with valid
and invalid signatures (intent to receive), and expects 200 or exactly 401 with an empty body.
Events have no id; their times are UTC without an offset.
Source: hookdeck's notes and webhook-co's configuration for Xero.
"""

from typing import Final

from webhook_inbox.domain.errors import Reason
from webhook_inbox.domain.json_path import at, document
from webhook_inbox.domain.model import Delivery
from webhook_inbox.domain.provider import STATUSES, Answer, Facts
from webhook_inbox.providers.schemes.builder import build_provider
from webhook_inbox.providers.schemes.handshakes import EMPTY
from webhook_inbox.providers.schemes.identity.batches import split_at
from webhook_inbox.providers.schemes.identity.event_identity import (
    Naming,
    dotted,
    in_json,
    joined,
    utc,
)
from webhook_inbox.providers.schemes.signatures.encodings import base64
from webhook_inbox.providers.schemes.signatures.hmac import Hmac


def _intent(delivery: Delivery, _: str) -> Answer | None:
    return EMPTY if at(document(delivery), "events") == [] else None


PROVIDER: Final = build_provider(
    "xero",
    Hmac(headers=("x-xero-signature",), encoding=base64),
    Naming(
        id=(joined(in_json("resourceId"), in_json("eventDateUtc")),),
        type=(dotted(in_json("eventCategory"), in_json("eventType")),),
        occurred_at=(utc(in_json("eventDateUtc")),),
    ),
    handshake=_intent,
    batch=split_at("events"),
    statuses={**STATUSES, Reason.MALFORMED: 401},
    refusal=Answer(401),
    acknowledgement=Answer(200),
    facts=Facts(
        title="Xero",
        scheme="HMAC-SHA256 over the body, base64",
        event_id="`resourceId` and `eventDateUtc` of each event in the list",
        handshake="intent to receive: 200 for the rightly, 401 for the wrongly signed, both empty",
        key_from="the webhooks key, on the app's Webhooks page; text, though it looks like base64",
    ),
)
