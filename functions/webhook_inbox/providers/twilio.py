"""Twilio: HMAC-SHA1 over the public URL and, for forms, the sorted fields.

Fields are joined as name and value; repeated values are sorted and used once. A JSON body is
covered by its hash only, `bodySHA256` in the signed URL. The end of a name is not signed, so one
signature fits several forms and is valid for one event; an ignored delivery costs a guard. The
signed URL may include the default port, so both forms are tried, as in the library.
Source: twilio/twilio-python `request_validator.py` and its tests.
"""

import hmac
from collections import defaultdict
from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Any, Final

from webhook_inbox.domain.errors import Reason, Rejected
from webhook_inbox.domain.json_path import form, query_field
from webhook_inbox.domain.model import Delivery
from webhook_inbox.domain.provider import Facts, Provider
from webhook_inbox.providers.schemes import http
from webhook_inbox.providers.schemes.builder import build_provider
from webhook_inbox.providers.schemes.generic import settings as given
from webhook_inbox.providers.schemes.http import encoded
from webhook_inbox.providers.schemes.identity.event_identity import (
    Naming,
    canonical_form,
    fixed,
    hash_of,
    header,
    in_form,
    joined,
)
from webhook_inbox.providers.schemes.signatures.encodings import base64
from webhook_inbox.providers.schemes.signatures.hmac import Hmac

SETTINGS: Final = frozenset({"url"})
EXAMPLE: Final = {"url": "https://inbox.example/webhooks/twilio"}
HASH: Final = "bodySHA256"


def _canonical(delivery: Delivery) -> bytes:
    signed_whole = query_field(delivery, HASH) is not None
    return delivery.body if signed_whole else canonical_form(delivery)


NAMING: Final = Naming(
    id=(
        header("i-twilio-idempotency-token"),
        joined(in_form("MessageSid"), in_form("MessageStatus")),
        joined(in_form("CallSid"), in_form("CallStatus")),
        hash_of(_canonical),
    ),
    type=(in_form("MessageStatus"), in_form("CallStatus"), in_form("SmsStatus"), fixed("request")),
)
FACTS: Final = Facts(
    title="Twilio",
    scheme="HMAC-SHA1 over URL and sorted form fields, base64",
    event_id="`I-Twilio-Idempotency-Token`, or the SID and its status",
    unsigned="id `I-Twilio-Idempotency-Token`",
    key_from="the account's auth token, in the console",
)


def provider(settings: Mapping[str, Any]) -> Provider:
    """Returns Twilio's provider; `url` is the address without its query."""
    base = given.public_url(settings)

    def signs(delivery: Delivery) -> Sequence[bytes]:
        suffix = _suffix(delivery)
        return [encoded(url + suffix) for url in _spellings(http.public(delivery, base))]

    scheme = Hmac(
        headers=("x-twilio-signature",), signs=signs, algorithm="sha1", encoding=base64, url=base
    )
    return build_provider("twilio", scheme, NAMING, facts=FACTS, canonical=_canonical)


def _suffix(delivery: Delivery) -> str:
    claimed = query_field(delivery, HASH)
    if claimed is not None:
        digest = sha256(delivery.body).hexdigest()
        if not hmac.compare_digest(claimed.encode(errors="replace"), digest.encode()):
            raise Rejected(Reason.INVALID_SIGNATURE, f"the body is not the one {HASH} names")
        return ""
    values: dict[str, set[str]] = defaultdict(set)
    for name, value in form(delivery):
        values[name].add(value)
    if delivery.body and not values:
        raise Rejected(Reason.MALFORMED, f"the body is not a form, and no {HASH} covers it")
    return "".join(name + value for name in sorted(values) for value in sorted(values[name]))


def _spellings(url: str) -> Sequence[str]:
    """Returns the URL with its port as it is, with none, and with the default one."""
    ported = (http.with_port(url, written=written) for written in (False, True))
    return list(dict.fromkeys((url, *ported)))
