"""Mailgun: an HMAC inside the body, over its own time and a random token only.

A captured signature is valid for any event, so the signed part is guarded and expires. Mailgun
retries for eight hours and may repeat a signature: a day is allowed, while its library allows 15
minutes. `parent-signature` is the signature of a subaccount's parent. Older webhooks and routes
send forms; multipart forms are not read.
Source: mailgun (PyPI) `security.py`; hookdeck's notes; documentation.mailgun.com
`webhooks/webhook-retries`.
"""

import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from hashlib import sha256
from typing import Final

from webhook_inbox.domain.errors import Reason, Rejected
from webhook_inbox.domain.json_path import at, document, form, text_at
from webhook_inbox.domain.model import Delivery
from webhook_inbox.domain.provider import Facts, Sample, Sent, Verified
from webhook_inbox.providers.schemes.builder import build_provider
from webhook_inbox.providers.schemes.http import encoded
from webhook_inbox.providers.schemes.identity.event_identity import (
    Naming,
    Reading,
    in_form,
    in_json,
)
from webhook_inbox.providers.schemes.identity.values import LAST_SECOND
from webhook_inbox.providers.schemes.signatures.hmac import Hmac
from webhook_inbox.providers.schemes.signatures.tolerance import Window

WINDOW: Final = Window(
    find=lambda delivery: _field(delivery, "timestamp"),
    tolerance=timedelta(days=1),
    ahead=timedelta(minutes=15),
)


def _field(delivery: Delivery, name: str) -> str | None:
    if document(delivery) is not None:
        return text_at(delivery, f"signature.{name}")
    return next((value for key, value in form(delivery) if key == name), None)


def _signs(delivery: Delivery) -> Sequence[bytes]:
    parts = [_field(delivery, name) for name in ("timestamp", "token")]
    if not all(parts):
        raise Rejected(Reason.MALFORMED, "the body has no time or token, which are signed")
    return [encoded("".join(part or "" for part in parts))]


SCHEME: Final = Hmac(find=partial(_field, name="signature"), signs=_signs, window=WINDOW)
PARENT: Final = replace(SCHEME, find=partial(_field, name="parent-signature"))


def _verify(delivery: Delivery, secrets: Sequence[str]) -> Verified:
    try:
        return SCHEME.verify(delivery, secrets)
    except Rejected as error:
        # In this order: a body that costs too much is not read again.
        invalid = error.reason is Reason.INVALID_SIGNATURE
        if not invalid or _field(delivery, "parent-signature") is None:
            raise
    return PARENT.verify(delivery, secrets)


def _occurred_at(reading: Reading) -> object:
    found = at(reading.document, "event-data.timestamp")
    # Seconds with a fraction.
    return int(found * 1000) if isinstance(found, float) and 0 < found < LAST_SECOND else found


def _compose(sample: Sample, secret: str, now: datetime) -> Sent:
    stamp = WINDOW.write(now)
    token = sha256(sample.event_id.encode()).hexdigest()[:50]
    signature = SCHEME.signature(secret, (stamp + token).encode())
    claim = {"token": token, "timestamp": stamp, "signature": signature}
    body = json.dumps({"signature": claim, "event-data": json.loads(sample.body)})
    return Sent({"content-type": "application/json"}, body.encode())


PROVIDER: Final = build_provider(
    "mailgun",
    SCHEME,
    Naming(
        id=(in_json("event-data.id"), in_form("token")),
        type=(in_json("event-data.event"), in_form("event")),
        occurred_at=(_occurred_at,),
    ),
    verify=_verify,
    compose=_compose,
    facts=Facts(
        title="Mailgun",
        body="none",
        scheme="HMAC-SHA256 over time and token inside the body, hex",
        window="1 day back, 15 minutes ahead",
        event_id="`event-data.id`",
        retries="for 8 hours: after 5, 10, 15 minutes, 1, 2 and 4 hours; 406 ends them",
        key_from="the HTTP webhook signing key (not the API key), in the account's settings",
    ),
)
