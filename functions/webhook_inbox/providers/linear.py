"""Linear: `Linear-Signature: <hex>` over the body, which contains the sending time.

The time is `webhookTimestamp`, a number of milliseconds. The header `Linear-Timestamp` is not
signed and never counts. Nor is `Linear-Event`, which repeats the body's `type`: a delivery in which
it differs is refused. A retry has a new time, so the bodies of one delivery differ. Linear treats
any answer but 200 as a failure.
Source: @linear/sdk 98 `webhooks`.
"""

import json
from datetime import datetime, timedelta
from typing import Final

from webhook_inbox.domain.errors import ConfigurationError
from webhook_inbox.domain.json_path import at, document, parse
from webhook_inbox.domain.model import Delivery
from webhook_inbox.domain.provider import Facts, Sample, Sent
from webhook_inbox.providers.schemes.builder import build_provider
from webhook_inbox.providers.schemes.identity.event_identity import Naming, dotted, header, in_json
from webhook_inbox.providers.schemes.signatures.hmac import Hmac
from webhook_inbox.providers.schemes.signatures.tolerance import Window, milliseconds

TIMESTAMP: Final = "webhookTimestamp"


def _timestamp(delivery: Delivery) -> str | None:
    found = at(document(delivery), TIMESTAMP)
    # The SDK rejects text, even if it is a number.
    return str(found) if isinstance(found, int) and not isinstance(found, bool) else None


WINDOW: Final = Window(tolerance=timedelta(seconds=60), clockwork=milliseconds, find=_timestamp)
SCHEME: Final = Hmac(headers=("linear-signature",), window=WINDOW)


def _compose(sample: Sample, secret: str, now: datetime) -> Sent:
    """Returns the sample with the current time; any other would be rejected."""
    try:
        event = parse(sample.body)
    except ValueError:
        event = None
    if not isinstance(event, dict):
        raise ConfigurationError("Linear's events are JSON objects; give one")
    stamped = {"type": sample.type.partition(".")[0], **event, TIMESTAMP: int(WINDOW.write(now))}
    body = json.dumps(stamped, separators=(",", ":"), ensure_ascii=False).encode()
    headers = SCHEME.sign(Sample(sample.event_id, sample.type, body), secret, now)
    return Sent({**headers, **_named(sample, str(stamped["type"]))}, body)


def _named(sample: Sample, type_: str) -> dict[str, str]:
    return {
        "content-type": "application/json; charset=utf-8",
        "linear-delivery": sample.event_id,
        "linear-event": type_,
    }


PROVIDER: Final = build_provider(
    "linear",
    SCHEME,
    Naming(
        id=(header("linear-delivery"),),
        type=(dotted(in_json("type"), in_json("action")),),
        occurred_at=(in_json("createdAt"),),
        repeated={"linear-event": in_json("type")},
    ),
    volatile=(TIMESTAMP,),
    compose=_compose,
    accepted_status=200,
    facts=Facts(
        title="Linear",
        scheme="HMAC-SHA256 over the body, hex",
        window="60 s, by the body's `webhookTimestamp`",
        event_id="`Linear-Delivery`",
        unsigned="id `Linear-Delivery`",
        key_from="the webhook's signing secret",
    ),
)
