"""Notion: `X-Notion-Signature: sha256=<hex>` over the body, under a token that Notion delivers.

The first request to a new subscription contains the token, unsigned. It is accepted only while an
operator is enrolling. The body contains the attempt number.
Source: hookdeck's notes and webhook-co's configuration.
"""

from typing import Final

from webhook_inbox.domain.json_path import document
from webhook_inbox.domain.model import Delivery
from webhook_inbox.domain.provider import Facts, Offer
from webhook_inbox.providers.schemes.builder import build_provider
from webhook_inbox.providers.schemes.handshakes import BODY_LIMIT, EMPTY
from webhook_inbox.providers.schemes.identity.event_identity import Naming, in_json, repeats
from webhook_inbox.providers.schemes.signatures.header_formats import Whole
from webhook_inbox.providers.schemes.signatures.hmac import Hmac

OFFERED: Final = "verification_token"
ATTEMPT: Final = "attempt_number"


def _offer(delivery: Delivery) -> Offer | None:
    body = document(delivery) if len(delivery.body) <= BODY_LIMIT else None
    # An event has an id, whatever else it holds.
    if not isinstance(body, dict) or "id" in body:
        return None
    token = body.get(OFFERED)
    return Offer(token, EMPTY) if isinstance(token, str) and token else None


PROVIDER: Final = build_provider(
    "notion",
    Hmac(headers=("x-notion-signature",), layout=Whole("sha256=")),
    Naming(
        id=(in_json("id"),),
        type=(in_json("type"),),
        occurred_at=(in_json("timestamp"),),
        retry=(repeats(in_json(ATTEMPT)),),
    ),
    offer=_offer,
    volatile=(ATTEMPT,),
    facts=Facts(
        title="Notion",
        scheme="HMAC-SHA256 over the body, hex after `sha256=`",
        event_id="`id`",
        handshake="the first request delivers the secret as `verification_token`",
        key_from="Notion makes it and delivers it: `webhookctl secrets enrol` before you create"
        " the subscription, then give Notion the same token in its form",
    ),
)
