"""Zoom: `x-zm-signature: v0=<hex>` over `v0:{timestamp}:{body}`.

Endpoint validation is itself signed, and expects the HMAC of a token under the same key. A token
with a colon could be `v0:…:…`, so it is never signed. Zoom's samples do not check the age; this
provider allows 5 minutes.
Source: zoom/webhook-sample `index.js`; @zoom/rivet's event verifier.
"""

import hmac
import re
from typing import Final

from webhook_inbox.domain.json_path import at
from webhook_inbox.domain.model import Delivery
from webhook_inbox.domain.provider import Answer, Facts
from webhook_inbox.providers.schemes.builder import build_provider
from webhook_inbox.providers.schemes.handshakes import challenge_in, json_answer
from webhook_inbox.providers.schemes.identity.event_identity import (
    Naming,
    Reading,
    content_hash,
    in_json,
)
from webhook_inbox.providers.schemes.signatures.header_formats import Whole
from webhook_inbox.providers.schemes.signatures.hmac import Hmac
from webhook_inbox.providers.schemes.signatures.signed_content import Template
from webhook_inbox.providers.schemes.signatures.tolerance import Window

_TOKEN: Final = re.compile(r"[A-Za-z0-9_+/=-]{8,128}", re.ASCII)


def _validation(delivery: Delivery, secret: str) -> Answer | None:
    if at(Reading(delivery).document, "event") != "endpoint.url_validation":
        return None
    token = challenge_in(delivery, in_json("payload.plainToken"))
    if token is None or _TOKEN.fullmatch(token) is None:
        return None
    made = hmac.digest(secret.encode(), token.encode(), "sha256").hex()
    return json_answer({"plainToken": token, "encryptedToken": made})


PROVIDER: Final = build_provider(
    "zoom",
    Hmac(
        headers=("x-zm-signature",),
        layout=Whole("v0="),
        signs=Template.parse("v0:{timestamp}:{body}"),
        window=Window(headers=("x-zm-request-timestamp",)),
    ),
    Naming(id=(content_hash,), type=(in_json("event"),), occurred_at=(in_json("event_ts"),)),
    handshake=_validation,
    facts=Facts(
        title="Zoom",
        scheme="HMAC-SHA256 over `v0:{timestamp}:{body}`, hex",
        window="5 minutes",
        event_id="the body's hash: none is documented",
        handshake="`endpoint.url_validation`, signed: answered with the token's HMAC",
        answer_within="3 s",
        key_from="the app's Secret Token, on its Feature page",
    ),
)
