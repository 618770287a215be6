"""Adyen's payment webhooks: an HMAC inside each item of the body, over some of its fields.

Every item is verified. An item without a signature, or a body without items, fails the delivery.
The key is hex. Fields are joined by colons without escaping; absent fields are empty. Only
`merchantReference` may contain one: with one free field the others, the event id among them, are
certain. Adyen expects `[accepted]`.
Source: Adyen/adyen-python-api-library `util.py`, `test/UtilTest.py`; docs.adyen.com
`webhooks/troubleshoot`.
"""

import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Final

from webhook_inbox.domain.errors import Reason, Rejected
from webhook_inbox.domain.json_path import at, document
from webhook_inbox.domain.model import Delivery
from webhook_inbox.domain.provider import Answer, Facts, Sample, Sent
from webhook_inbox.providers.schemes.builder import build_provider
from webhook_inbox.providers.schemes.http import encoded
from webhook_inbox.providers.schemes.identity.batches import elements, split_at
from webhook_inbox.providers.schemes.identity.event_identity import Naming, Reading, in_json, joined
from webhook_inbox.providers.schemes.signatures import keys
from webhook_inbox.providers.schemes.signatures.base import each_of
from webhook_inbox.providers.schemes.signatures.encodings import base64
from webhook_inbox.providers.schemes.signatures.hmac import Hmac

LIST: Final = "notificationItems"
ITEM: Final = "NotificationRequestItem"
SIGNATURE: Final = "additionalData.hmacSignature"
# The merchant's own text, which may contain a colon.
REFERENCE: Final = "merchantReference"
FIELDS: Final = (
    "pspReference", "originalReference", "merchantAccountCode", REFERENCE,
    "amount.value", "amount.currency", "eventCode", "success",
)  # fmt: skip


def _signature(item: Delivery) -> str:
    found = at(document(item), SIGNATURE)
    if not isinstance(found, str) or not found:
        raise Rejected(Reason.MALFORMED, "an item of the delivery has no signature")
    return found


def _signed(item: Delivery) -> Sequence[bytes]:
    values = {field: _text(at(document(item), field)) for field in FIELDS}
    if any(":" in value for field, value in values.items() if field != REFERENCE):
        # The same signature would fit other fields.
        raise Rejected(Reason.MALFORMED, "a signed field of an item has a colon")
    return [encoded(":".join(values.values()))]


def _text(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int):
        return format(value, "d") if abs(value) < 10**100 else ""
    if not isinstance(value, str):
        raise Rejected(Reason.MALFORMED, "a signed field of an item is not text")
    return value


def _success(reading: Reading) -> str:
    """Finds whether it worked, as it is signed: text, though JSON has a word for it."""
    return _text(at(reading.document, "success"))


SCHEME: Final = Hmac(
    find=_signature, signs=_signed, encoding=base64, key=keys.of_part("hmac", keys.hexadecimal)
)
ITEMS: Final = split_at(LIST, inside=ITEM)


def _precheck(delivery: Delivery, secrets: Sequence[str]) -> None:
    # Only the signature is copied: an item may be as large as the delivery.
    signature = at(elements(delivery, LIST)[0], f"{ITEM}.{SIGNATURE}")
    item = json.dumps({"additionalData": {"hmacSignature": signature}})
    SCHEME.precheck(replace(delivery, body=item.encode()), secrets)


def _compose(sample: Sample, secret: str, now: datetime) -> Sent:
    item = json.loads(sample.body)
    delivery = Delivery("it", "POST", "/webhooks/it", "", {}, sample.body, now)
    signature = SCHEME.signature(secret, SCHEME.contents(delivery, "")[0])
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
    verify=each_of(ITEMS, SCHEME.verify),
    precheck=_precheck,
    batch=ITEMS,
    guard=None,
    compose=_compose,
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
