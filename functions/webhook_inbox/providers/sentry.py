"""Sentry's integrations: `Sentry-Hook-Signature: <hex>` over the body.

Neither the id nor the time is signed, so the time is ignored; nor is the resource, which is half of
the type. Sentry's page signs the parsed JSON written again; its vector shows that this equals the
bytes sent.
Source: webhook-co's configuration; getsentry/sentry-docs `integration-platform/webhooks.mdx`.
"""

from datetime import datetime
from typing import Final

from webhook_inbox.domain.provider import Facts, Sample
from webhook_inbox.providers.schemes.builder import build_provider
from webhook_inbox.providers.schemes.identity.event_identity import (
    Naming,
    content_hash,
    dotted,
    header,
    in_json,
)
from webhook_inbox.providers.schemes.signatures.hmac import Hmac

RESOURCE: Final = "sentry-hook-resource"
STAMP: Final = "sentry-hook-timestamp"
SCHEME: Final = Hmac(headers=("sentry-hook-signature",))


def _sign(sample: Sample, secret: str, now: datetime) -> dict[str, str]:
    return SCHEME.sign(sample, secret, now) | {
        "request-id": sample.event_id,
        RESOURCE: sample.type.partition(".")[0],
        STAMP: str(int(now.timestamp())),
    }


PROVIDER: Final = build_provider(
    "sentry",
    SCHEME,
    Naming(
        id=(header("request-id"), content_hash), type=(dotted(header(RESOURCE), in_json("action")),)
    ),
    sign=_sign,
    facts=Facts(
        title="Sentry",
        scheme="HMAC-SHA256 over the body, hex",
        event_id="`Request-ID`",
        unsigned="id `Request-ID`, type `Sentry-Hook-Resource`",
        answer_within="1 s",
        key_from="the integration's client secret, in its settings",
    ),
)
