"""Cycles: `X-Cycles-Signature: sha256=<hex>` over the body; id and time are not signed.

Source: the webhook event delivery protocol of runcycles/docs.
"""

from typing import Final

from webhook_inbox.domain.provider import Facts
from webhook_inbox.providers.schemes.builder import build_provider
from webhook_inbox.providers.schemes.identity.event_identity import Naming, header, in_json
from webhook_inbox.providers.schemes.signatures.header_formats import Whole
from webhook_inbox.providers.schemes.signatures.hmac import Hmac

PROVIDER: Final = build_provider(
    "cycles",
    Hmac(headers=("x-cycles-signature",), layout=Whole("sha256=")),
    Naming(
        id=(header("x-cycles-event-id"),),
        type=(header("x-cycles-event-type"),),
        occurred_at=(in_json("timestamp"),),
    ),
    kept_headers=frozenset({"x-cycles-trace-id"}),
    facts=Facts(
        title="Cycles",
        scheme="HMAC-SHA256 over the body, hex",
        event_id="`X-Cycles-Event-Id`",
        handshake="none; `system.webhook_test` is an event",
        answer_within="30 s",
        retries="5: after 1, 2, 4, 8 and 16 s; disabled after 10 failures",
        key_from="made by the server or chosen by you when the subscription is made",
    ),
)
