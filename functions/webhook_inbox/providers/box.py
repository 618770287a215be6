"""Box: base64 over `{body}{time}` in two headers, of the primary and the secondary key.

Box's library accepts the body as sent, or with non-ASCII and control characters escaped, and no
time in the future. The event id is the `id` in the body, if present: `BOX-DELIVERY-ID` changes from
retry to retry.
Source: box/box-python-sdk `managers/webhooks.py`, `internal/utils.py`, `test/webhooks.py`; Box's
page on webhooks.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from json.encoder import encode_basestring_ascii
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
# Escapes of JSON strings that Box writes in another way.
DIFFERENT: Final = ((r"\"", '"'), (r"\b", r"\u0008"), (r"\f", r"\u000c"))
# Far above Box's events. Escaping multiplies the size of a hostile body.
ESCAPED_LIMIT: Final = 1024 * 1024


def _contents(delivery: Delivery) -> Sequence[bytes]:
    stamp = encoded(required(delivery.headers, (TIME,)))
    raw = delivery.body + stamp
    if len(delivery.body) > ESCAPED_LIMIT:
        return [raw]
    try:
        return [raw, _escaped(delivery.body.decode()) + stamp]
    except UnicodeDecodeError:
        return [raw]


def _escaped(text: str) -> bytes:
    """Escapes all but printable ASCII and quotes, and each backslash not before a slash.

    In two compiled steps: the escapes of a JSON string, then those that differ. In JSON each
    backslash begins an escape, so a pair is replaced first, by a control character, which JSON
    never contains.
    """
    written = encode_basestring_ascii(text)[1:-1].replace("\\\\", "\0")
    for escape, ours in DIFFERENT:
        written = written.replace(escape, ours)
    return written.replace("\0/", r"\/").replace("\0", "\\\\").encode()


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
        unsigned="id `BOX-DELIVERY-ID` where the body has no `id`",
        key_from="the app's primary and secondary signature key, made in the Developer Console",
    ),
)
