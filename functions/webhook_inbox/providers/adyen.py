"""Adyen's payment webhooks: an HMAC inside each item of the body, over some of its fields.

Every item is checked; an item without a signature, or no item at all, fails the whole. The key is
hex. Fields are joined by colons without escaping, absent ones empty. Adyen wants `[accepted]`.
Source: Adyen/adyen-python-api-library `util.py`, `test/UtilTest.py`.
"""

import json
from datetime import datetime
from typing import Final

from webhook_inbox.domain.errors import Reason, Rejected
from webhook_inbox.domain.json_path import at
from webhook_inbox.domain.provider import Answer, Facts, Sample, Sent
from webhook_inbox.providers.schemes.builder import build_provider
from webhook_inbox.providers.schemes.http import encoded
from webhook_inbox.providers.schemes.identity.batches import elements, split_at
from webhook_inbox.providers.schemes.identity.event_identity import Naming, Reading, in_json, joined
from webhook_inbox.providers.schemes.signatures import keys
from webhook_inbox.providers.schemes.signatures.encodings import base64
from webhook_inbox.providers.schemes.signatures.hmac import Hmac
from webhook_inbox.providers.schemes.signatures.per_item import EachItem

LIST: Final = "notificationItems"
ITEM: Final = "NotificationRequestItem"
SIGNATURE: Final = "additionalData.hmacSignature"
FIELDS: Final = (
    "pspReference", "originalReference", "merchantAccountCode", "merchantReference",
    "amount.value", "amount.currency", "eventCode", "success",
)  # fmt: skip


def _signed(item: object) -> bytes:
    return encoded(":".join(_text(at(item, f"{ITEM}.{field}")) for field in FIELDS))


def _text(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int):
        return format(value, "d") if abs(value) < 10**100 else ""
    if not isinstance(value, str):
        raise Rejected(Reason.MALFORMED, "a signed field of an item is no text")
    return value


def _success(reading: Reading) -> str:
    """Finds whether it worked, as it is signed: text, though JSON has a word for it."""
    return _text(at(reading.document, "success"))


SCHEME: Final = EachItem(
    mac=Hmac(encoding=base64, key=keys.of_part("hmac", keys.hexadecimal)),
    items=lambda delivery: elements(delivery, LIST),
    signature=lambda item: at(item, f"{ITEM}.{SIGNATURE}"),
    signs=_signed,
)


def _compose(sample: Sample, secret: str, now: datetime) -> Sent:
    del now  # neither signed nor sent
    item = json.loads(sample.body)
    signature = SCHEME.mac.signature(secret, _signed({ITEM: item}))
    item["additionalData"] = {**item.get("additionalData", {}), "hmacSignature": signature}
    body = json.dumps({"live": "false", LIST: [{ITEM: item}]}).encode()
    return Sent({"content-type": "application/json"}, body)


PROVIDER: Final = build_provider(
    "adyen",
    SCHEME,
    Naming(
        id=(
            joined(in_json("pspReference"), in_json("eventCode"), _success),
            joined(in_json("pspReference"), in_json("eventCode")),
        ),
        type=(in_json("eventCode"),),
        occurred_at=(in_json("eventDate"),),
    ),
    batch=split_at(LIST, inside=ITEM),
    compose=_compose,
    sign=lambda sample, secret, now: dict(_compose(sample, secret, now).headers),
    acknowledgement=Answer(200, b"[accepted]"),
    facts=Facts(
        title="Adyen (payments)",
        body="partly",
        scheme="HMAC-SHA256 inside each item, over eight fields, base64; key in hex",
        event_id="`pspReference`, `eventCode` and `success`",
        handshake="none; every answer is `[accepted]`",
        answer_within="10 s",
        retries="3 at once, then every 2 minutes to 8 hours for 30 days",
        key_from="the HMAC key, generated on the webhook's page of the Customer Area",
    ),
)
