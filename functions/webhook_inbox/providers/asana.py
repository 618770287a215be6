"""Asana: `X-Hook-Signature: <hex>` over the body, under a secret that Asana delivers.

The first request to a new webhook offers the secret in `X-Hook-Secret`, unsigned. It is accepted
only while an operator is enrolling. Events have no id. Asana sends an empty heartbeat every eight
hours.
Source: hookdeck's notes and webhook-co's handshake code.
"""

from typing import Final

from webhook_inbox.domain.json_path import document
from webhook_inbox.domain.model import Delivery
from webhook_inbox.domain.provider import Answer, Facts, Offer
from webhook_inbox.providers.schemes.builder import build_provider
from webhook_inbox.providers.schemes.handshakes import EMPTY, as_header
from webhook_inbox.providers.schemes.identity.event_identity import (
    Naming,
    content_hash,
    dotted,
    in_json,
)
from webhook_inbox.providers.schemes.signatures.hmac import Hmac


def _offer(delivery: Delivery) -> Offer | None:
    secret = delivery.headers.get("x-hook-secret", "")
    if not secret or "x-hook-signature" in delivery.headers:
        return None
    return Offer(secret, as_header("x-hook-secret")(secret))


def _heartbeat(delivery: Delivery, _: str) -> Answer | None:
    return EMPTY if document(delivery) in ({}, {"events": []}) else None


PROVIDER: Final = build_provider(
    "asana",
    Hmac(headers=("x-hook-signature",)),
    Naming(
        id=(content_hash,),
        type=(dotted(in_json("events.0.resource.resource_type"), in_json("events.0.action")),),
        occurred_at=(in_json("events.0.created_at"),),
    ),
    offer=_offer,
    handshake=_heartbeat,
    facts=Facts(
        title="Asana",
        scheme="HMAC-SHA256 over the body, hex",
        event_id="the body's hash: its events have no id",
        handshake="the first request delivers the secret in `X-Hook-Secret`, echoed",
        answer_within="10 s",
        retries="24 hours, then the webhook is deleted",
        key_from="Asana makes it and delivers it: `webhookctl secrets enrol` before you create"
        " the webhook",
    ),
)
