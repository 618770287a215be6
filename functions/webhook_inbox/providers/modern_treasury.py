"""Modern Treasury: `X-Signature: <hex>` over the body; id and topic are in unsigned headers.

Source: modern-treasury 1.80 (PyPI) `resources/webhooks.py`.
"""

from datetime import datetime
from typing import Final

from webhook_inbox.domain.provider import Facts, Sample
from webhook_inbox.providers.schemes.builder import build_provider
from webhook_inbox.providers.schemes.identity.event_identity import Naming, dotted, header, in_json
from webhook_inbox.providers.schemes.signatures.hmac import Hmac

TOPIC: Final = "x-topic"
ID: Final = "x-event-id"
SCHEME: Final = Hmac(headers=("x-signature",))


def _sign(sample: Sample, secret: str, now: datetime) -> dict[str, str]:
    named = {ID: sample.event_id, TOPIC: sample.type.partition(".")[0]}
    return {**named, **SCHEME.sign(sample, secret, now)}


PROVIDER: Final = build_provider(
    "modern-treasury",
    SCHEME,
    Naming(
        id=(header(ID),),
        type=(dotted(header(TOPIC), in_json("event")),),
        occurred_at=(in_json("data.updated_at"), in_json("data.created_at")),
    ),
    sign=_sign,
    facts=Facts(
        title="Modern Treasury",
        scheme="HMAC-SHA256 over the body, hex",
        event_id="`X-Event-ID`",
        unsigned="id `X-Event-ID`, type `X-Topic`",
        key_from="the webhook key, in the dashboard's developer settings",
    ),
)
