"""Sanity: `sanity-webhook-signature: t=<milliseconds>,v1=<base64url>` over `{t}.{body}`.

The header is a time and one signature, in this order. The time is signed and never too old. A time
before 2021, when Sanity started to sign, and an empty body are rejected, as by the toolkit. The
webhook's projection defines the body. The id is in an unsigned header, so a replayed delivery is
detected by its signed content, which includes the time.
Source: sanity-io/webhook-toolkit `src/signature.ts` and its tests.
"""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Final

from webhook_inbox.domain.errors import Reason, Rejected
from webhook_inbox.domain.model import Delivery
from webhook_inbox.domain.provider import Facts, Verified
from webhook_inbox.providers.schemes.builder import build_provider
from webhook_inbox.providers.schemes.identity.event_identity import Naming, header, in_json
from webhook_inbox.providers.schemes.signatures.encodings import base64url
from webhook_inbox.providers.schemes.signatures.header_formats import Pairs
from webhook_inbox.providers.schemes.signatures.hmac import Hmac
from webhook_inbox.providers.schemes.signatures.signed_content import Template
from webhook_inbox.providers.schemes.signatures.tolerance import Window, milliseconds

SIGNATURE: Final = "sanity-webhook-signature"
FIRST: Final = datetime(2021, 1, 1, tzinfo=UTC)
SCHEME: Final = Hmac(
    headers=(SIGNATURE,),
    layout=Pairs("v1", "t", sole=True),
    signs=Template.parse("{timestamp}.{body}"),
    encoding=base64url,
    window=Window(tolerance=None, clockwork=milliseconds),
)


def _verify(delivery: Delivery, secrets: Sequence[str]) -> Verified:
    verified = SCHEME.verify(delivery, secrets)
    if verified.signed_at is None or verified.signed_at < FIRST:
        raise Rejected(Reason.MALFORMED, "the time is before Sanity signed at all")
    if not delivery.body:
        raise Rejected(Reason.MALFORMED, "Sanity never signs an empty body")
    return verified


PROVIDER: Final = build_provider(
    "sanity",
    SCHEME,
    Naming(
        id=(header("idempotency-key"),),
        type=(in_json("_type"), header("sanity-operation")),
        occurred_at=(in_json("_updatedAt"),),
    ),
    verify=_verify,
    # A projection may omit `_type`; then the type is in a header that is not signed.
    guards_ignored=True,
    facts=Facts(
        title="Sanity",
        scheme="HMAC-SHA256 over `{timestamp}.{body}`, base64url",
        event_id="`idempotency-key`",
        unsigned="id `idempotency-key`; type `sanity-operation` where the projection omits `_type`",
        answer_within="30 s",
        retries="2, 30 s apart",
        key_from="the secret that you choose in the webhook's settings",
    ),
)
