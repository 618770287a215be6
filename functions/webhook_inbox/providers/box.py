"""Box: base64 over `{body}{time}` in two headers, of the primary and the secondary key.

Box's library accepts the body as sent, or with non-ASCII and control characters escaped, and no
time in the future. The event id is the `id` in the body, if present: `BOX-DELIVERY-ID` changes from
retry to retry.
Source: box/box-python-sdk `managers/webhooks.py`, `internal/utils.py`, `test/webhooks.py`; Box's
page on webhooks.
"""

import re
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final

from webhook_inbox.domain.errors import Reason, Rejected
from webhook_inbox.domain.model import Delivery
from webhook_inbox.domain.provider import Facts, Sample, Verified
from webhook_inbox.providers.schemes.builder import build_provider
from webhook_inbox.providers.schemes.http import encoded, required
from webhook_inbox.providers.schemes.identity.event_identity import Naming, header, in_json
from webhook_inbox.providers.schemes.signatures.encodings import base64
from webhook_inbox.providers.schemes.signatures.hmac import Hmac
from webhook_inbox.providers.schemes.signatures.tolerance import Window, iso

TIME: Final = "box-delivery-timestamp"
ID: Final = "box-delivery-id"
# The only supported version and algorithm.
PINNED: Final[Mapping[str, str]] = {
    "box-signature-version": "1",
    "box-signature-algorithm": "HmacSHA256",
}
SHORT: Final = {"\n": r"\n", "\r": r"\r", "\t": r"\t"}


def _contents(delivery: Delivery) -> Sequence[bytes]:
    stamp = encoded(required(delivery.headers, (TIME,)))
    try:
        escaped = _escaped(delivery.body.decode())
    except UnicodeDecodeError:
        return [delivery.body + stamp]
    return [delivery.body + stamp, escaped + stamp]


def _escaped(text: str) -> bytes:
    doubled = re.sub(r"\\(?!/)", r"\\\\", text)
    return re.sub(r"[^\x20-\x7e]", lambda found: _escape(found[0]), doubled).encode()


def _escape(character: str) -> str:
    units = character.encode("utf-16-be").hex()
    pairs = "".join(rf"\u{units[place : place + 4]}" for place in range(0, len(units), 4))
    return SHORT.get(character, pairs)


SCHEME: Final = Hmac(
    headers=("box-signature-primary", "box-signature-secondary"),
    every=True,
    signs=_contents,
    encoding=base64,
    window=Window(
        headers=(TIME,), tolerance=timedelta(minutes=10), clockwork=iso, ahead=timedelta(0)
    ),
)


def _verify(delivery: Delivery, secrets: Sequence[str]) -> Verified:
    verified = SCHEME.verify(delivery, secrets)
    for name, value in PINNED.items():
        if delivery.headers.get(name) != value:
            raise Rejected(Reason.MALFORMED, f"{name} is not {value}")
    return verified


def _sign(sample: Sample, secret: str, now: datetime) -> dict[str, str]:
    return {**SCHEME.sign(sample, secret, now), **PINNED, ID: sample.event_id}


PROVIDER: Final = build_provider(
    "box",
    SCHEME,
    Naming(
        id=(in_json("id"), header(ID)),
        type=(in_json("trigger"),),
        occurred_at=(in_json("created_at"),),
    ),
    verify=_verify,
    sign=_sign,
    signature_headers=SCHEME.reads | PINNED.keys(),
    facts=Facts(
        title="Box",
        scheme="HMAC-SHA256 over `{body}{time}`, base64, under two keys",
        window="10 minutes, nothing ahead of the clock",
        event_id="`id`, or `BOX-DELIVERY-ID`, which changes from retry to retry",
        key_from="the app's primary and secondary signature key, made in the Developer Console",
    ),
)
