"""Wise: `X-Signature-SHA256`, RSA with SHA-256 over the body, under a key that Wise publishes.

Production and sandbox have different keys. A test notification, marked by an unsigned header, is
acknowledged and not stored. The older `X-Signature` is SHA-1 and never counts.
Source: transferwise/digital-signatures-examples `verify-webhook-signature`; Wise's page on event
handling.
"""

from typing import Final

from webhook_inbox.domain.model import Delivery
from webhook_inbox.domain.provider import Answer, Facts
from webhook_inbox.providers.schemes.builder import build_provider
from webhook_inbox.providers.schemes.handshakes import EMPTY
from webhook_inbox.providers.schemes.identity.event_identity import Naming, header, in_json
from webhook_inbox.providers.schemes.signatures.asymmetric import Rsa, spki

TEST: Final = "x-test-notification"


def _test(delivery: Delivery, _: str) -> Answer | None:
    return EMPTY if delivery.headers.get(TEST) == "true" else None


PROVIDER: Final = build_provider(
    "wise",
    Rsa(headers=("x-signature-sha256",), load=spki),
    Naming(
        id=(header("x-delivery-id"),),
        type=(in_json("event_type"),),
        occurred_at=(in_json("data.occurred_at"), in_json("sent_at")),
    ),
    handshake=_test,
    kept_headers=frozenset({TEST}),
    facts=Facts(
        title="Wise",
        scheme="RSA PKCS#1 v1.5 with SHA-256 over the body, base64",
        event_id="`X-Delivery-Id`",
        unsigned="id `X-Delivery-Id`",
        handshake="a signed test notification with `X-Test-Notification: true`, answered with 200",
        answer_within="5 s",
        retries="25 within two weeks",
        key_from="the public key on Wise's page on webhooks, sandbox and production apart",
    ),
)
