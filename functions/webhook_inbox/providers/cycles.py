"""Cycles: `X-Cycles-Signature: sha256=<hex>` over the body; id and time are not signed.

Source: the webhook event delivery protocol of runcycles/docs.
"""

from datetime import datetime
from typing import Final

from webhook_inbox.domain.provider import Facts, Provider, Sample
from webhook_inbox.providers.schemes.identity.event_identity import Naming, header, in_json
from webhook_inbox.providers.schemes.signatures.header_formats import Whole
from webhook_inbox.providers.schemes.signatures.hmac import Hmac

SCHEME: Final = Hmac(headers=("x-cycles-signature",), layout=Whole("sha256="))
NAMING: Final = Naming(
    id=(header("x-cycles-event-id"),),
    type=(header("x-cycles-event-type"),),
    occurred_at=(in_json("timestamp"),),
)


def _sign(sample: Sample, secret: str, now: datetime) -> dict[str, str]:
    return SCHEME.sign(sample, secret, now) | {
        "x-cycles-event-id": sample.event_id,
        "x-cycles-event-type": sample.type,
    }


PROVIDER: Final = Provider(
    name="cycles",
    verify=SCHEME.verify,
    signature_headers=SCHEME.reads,
    identify=NAMING.identify,
    sign=_sign,
    guard=lambda delivery, _: delivery.body,
    kept_headers=frozenset({"x-cycles-event-id", "x-cycles-event-type", "x-cycles-trace-id"}),
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
