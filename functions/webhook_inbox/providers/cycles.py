"""Cycles: `X-Cycles-Signature: sha256=<hex>` over the body, which has the event's id and type.

The headers `X-Cycles-Event-Id` and `X-Cycles-Event-Type` repeat both and are not signed: they never
count, and one that differs is refused.
Source: the webhook event delivery protocol of runcycles/docs.
"""

from typing import Final

from webhook_inbox.domain.provider import Facts
from webhook_inbox.providers.schemes.builder import build_provider
from webhook_inbox.providers.schemes.identity.event_identity import Naming, in_json
from webhook_inbox.providers.schemes.signatures.header_formats import Whole
from webhook_inbox.providers.schemes.signatures.hmac import Hmac

PROVIDER: Final = build_provider(
    "cycles",
    Hmac(headers=("x-cycles-signature",), layout=Whole("sha256=")),
    Naming(
        id=(in_json("event_id"),),
        type=(in_json("event_type"),),
        occurred_at=(in_json("timestamp"),),
        repeated={
            "x-cycles-event-id": in_json("event_id"),
            "x-cycles-event-type": in_json("event_type"),
        },
    ),
    kept_headers=frozenset({"x-cycles-trace-id"}),
    facts=Facts(
        title="Cycles",
        scheme="HMAC-SHA256 over the body, hex",
        event_id="`event_id`",
        handshake="none; `system.webhook_test` is an event",
        answer_within="30 s",
        retries="5: after 1, 2, 4, 8 and 16 s; disabled after 10 failures",
        key_from="made by the server or chosen by you when the subscription is made",
    ),
)
