"""LINE: `X-Line-Signature: <base64>` over the body, which holds a list of events.

The console's Verify button sends a signed empty list. A redelivered event differs only in its
redelivery flag.
Source: line/line-bot-sdk-python `v3/webhook.py` and its tests; @line/bot-sdk; developers.line.biz
`verify-webhook-url`.
"""

from typing import Final

from webhook_inbox.domain.json_path import at, document
from webhook_inbox.domain.model import Delivery
from webhook_inbox.domain.provider import Answer, Facts
from webhook_inbox.providers.schemes.builder import build_provider
from webhook_inbox.providers.schemes.handshakes import EMPTY
from webhook_inbox.providers.schemes.identity.batches import split_at
from webhook_inbox.providers.schemes.identity.event_identity import Naming, Reading, in_json
from webhook_inbox.providers.schemes.signatures.encodings import base64
from webhook_inbox.providers.schemes.signatures.hmac import Hmac

REDELIVERED: Final = "deliveryContext.isRedelivery"


def _verification(delivery: Delivery, _: str) -> Answer | None:
    return EMPTY if at(document(delivery), "events") == [] else None


def _retry(reading: Reading) -> int | None:
    """Returns 1 for a redelivery; LINE does not count them."""
    found = at(reading.document, REDELIVERED)
    return int(found) if isinstance(found, bool) else None


PROVIDER: Final = build_provider(
    "line",
    Hmac(headers=("x-line-signature",), encoding=base64),
    Naming(
        id=(in_json("webhookEventId"),),
        type=(in_json("type"),),
        occurred_at=(in_json("timestamp"),),
        retry=(_retry,),
    ),
    batch=split_at("events"),
    handshake=_verification,
    volatile=(REDELIVERED, f"events.{REDELIVERED}"),
    accepted_status=200,
    facts=Facts(
        title="LINE",
        scheme="HMAC-SHA256 over the body, base64",
        event_id="`webhookEventId` of each event in `events`",
        handshake="Verify sends an empty list of events, signed: answered 200",
        retries="none unless redelivery is switched on for the channel",
        key_from="the channel secret",
    ),
)
