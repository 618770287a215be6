"""Contentful: HMAC-SHA256 over method, path, listed headers and body, one per line, in hex.

`x-contentful-signed-headers` lists the headers. The list and the time are always signed, so none
can be removed. The query is escaped as one value, then the whole path again. An age of exactly 30 s
is rejected. The toolkit accepts any time in the future; this provider does not.
Source: contentful/node-apps-toolkit `src/requests`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, Final
from urllib.parse import urlsplit

from webhook_inbox.domain.errors import Reason, Rejected
from webhook_inbox.domain.model import Delivery
from webhook_inbox.domain.provider import Facts, Provider, Sample
from webhook_inbox.providers.schemes import http
from webhook_inbox.providers.schemes.builder import build_provider
from webhook_inbox.providers.schemes.generic import settings as given
from webhook_inbox.providers.schemes.http import encoded, required
from webhook_inbox.providers.schemes.identity.event_identity import (
    Naming,
    content_hash,
    header,
    in_json,
    joined,
    repeats,
)
from webhook_inbox.providers.schemes.signatures.hmac import Hmac
from webhook_inbox.providers.schemes.signatures.tolerance import Window, milliseconds

SETTINGS: Final = frozenset({"url"})
EXAMPLE: Final = {"url": "https://inbox.example/webhooks/contentful"}
SIGNATURE: Final = "x-contentful-signature"
TIMESTAMP: Final = "x-contentful-timestamp"
LIST: Final = "x-contentful-signed-headers"
ATTEMPT: Final = "x-contentful-webhook-request-attempt"
TOPIC: Final = "x-contentful-topic"
# Headers that may be signed: re-verifying a rejected delivery needs them.
KEPT: Final = frozenset(
    {ATTEMPT}
    | {
        f"x-contentful-{name}"
        for name in (
            "app-id", "crn", "environment-id", "space-id", "user-id", "webhook-name",
        )
    }
)  # fmt: skip
WINDOW: Final = Window(
    headers=(TIMESTAMP,), tolerance=timedelta(seconds=30), clockwork=milliseconds, exclusive=True
)
NAMING: Final = Naming(
    id=(
        header("x-contentful-idempotency-key"),
        joined(header(TOPIC), in_json("sys.id"), in_json("sys.revision")),
        content_hash,
    ),
    type=(header(TOPIC),),
    # A header is signed only if the space's settings list it.
    occurred_at=(in_json("sys.updatedAt"),),
    retry=(repeats(header(ATTEMPT)),),
)
FACTS: Final = Facts(
    title="Contentful",
    scheme="HMAC-SHA256 over method, path, listed headers and body, hex",
    window="30 s",
    event_id="`X-Contentful-Idempotency-Key`, or topic, `sys.id` and `sys.revision`",
    unsigned="unless they are listed: id `X-Contentful-Idempotency-Key`, type `X-Contentful-Topic`",
    key_from="the 64 characters of the webhooks' signing secret, made in the space's settings",
)


def provider(settings: Mapping[str, Any]) -> Provider:
    """Returns Contentful's provider; only the path of `url` is signed."""
    base = given.public_url(settings)

    def signs(delivery: Delivery) -> Sequence[bytes]:
        path = urlsplit(base).path or "/" if base else delivery.path
        parts = (delivery.method, http.escaped(path, delivery.query), _listed(delivery.headers))
        return [b"\n".join((*map(encoded, parts), delivery.body))]

    scheme = Hmac(headers=(SIGNATURE,), signs=signs, window=WINDOW)

    def sign(sample: Sample, secret: str, now: datetime) -> dict[str, str]:
        signed = {
            "content-type": "application/vnd.contentful.management.v1+json",
            "x-contentful-idempotency-key": sample.event_id,
            TIMESTAMP: WINDOW.write(now),
            TOPIC: sample.type,
        }
        headers = {**signed, LIST: ",".join(sorted((*signed, LIST)))}
        sent = Delivery("it", "POST", "/webhooks/it", "", headers, sample.body, now)
        return {**headers, SIGNATURE: scheme.signature(secret, signs(sent)[0])}

    made = build_provider("contentful", scheme, NAMING, sign=sign, kept_headers=KEPT, facts=FACTS)
    return replace(made, signature_headers=made.signature_headers | {LIST})


def _listed(headers: Mapping[str, str]) -> str:
    """Returns the listed headers that are present, sorted, with a sorted list.

    Raises:
        Rejected: it lists less than itself and the time, which are always signed (malformed).
    """
    names = required(headers, (LIST,)).split(",")
    if len(names) < 2:
        raise Rejected(Reason.MALFORMED, f"{LIST} lists too few headers")
    signed = {name: headers[name].strip() for name in names if name in headers}
    signed[TIMESTAMP] = headers.get(TIMESTAMP, "")
    signed[LIST] = ",".join(sorted({*signed, LIST}))
    return ";".join(f"{name}:{signed[name]}" for name in sorted(signed))
