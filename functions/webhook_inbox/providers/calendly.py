"""Calendly: `Calendly-Webhook-Signature: t=<seconds>,v1=<hex>` over `{t}.{body}`.

Events have no id. The key is the object's URI, the event's name and the time, because the same
event can happen to an object repeatedly (`event_type.updated`).
Source: hookdeck's notes on Calendly; webhook-co's provider; developer.calendly.com
`webhook-errors`, `webhook-timeouts`.
"""

from datetime import timedelta
from typing import Final

from webhook_inbox.domain.provider import Facts
from webhook_inbox.providers.schemes.builder import build_provider
from webhook_inbox.providers.schemes.identity.event_identity import (
    Naming,
    content_hash,
    in_json,
    joined,
)
from webhook_inbox.providers.schemes.signatures.header_formats import Pairs
from webhook_inbox.providers.schemes.signatures.hmac import Hmac
from webhook_inbox.providers.schemes.signatures.signed_content import Template
from webhook_inbox.providers.schemes.signatures.tolerance import Window

_URI: Final = in_json("payload.uri")
_EVENT: Final = in_json("event")
_TIME: Final = in_json("created_at")

PROVIDER: Final = build_provider(
    "calendly",
    Hmac(
        headers=("calendly-webhook-signature",),
        layout=Pairs(signature="v1", timestamp="t"),
        signs=Template.parse("{timestamp}.{body}"),
        window=Window(tolerance=timedelta(minutes=3)),
    ),
    Naming(
        id=(joined(_URI, _EVENT, _TIME), joined(_URI, _EVENT), content_hash),
        type=(_EVENT,),
        occurred_at=(_TIME,),
    ),
    facts=Facts(
        title="Calendly",
        scheme="HMAC-SHA256 over `{t}.{body}`, hex",
        window="3 minutes",
        event_id="`payload.uri`, `event` and `created_at`: there is no id",
        retries="for 24 hours, then the subscription is disabled",
        answer_within="15 s",
        key_from="the signing key that the API returns, or that you give, when you subscribe",
    ),
)
