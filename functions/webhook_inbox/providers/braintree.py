"""Braintree: HMAC-SHA1 of the form's `bt_payload`, keyed with the SHA-1 of the private key.

`bt_signature` lists `publicKey|<hex>` for each of the merchant's keys, joined by `&`. The payload
is XML in base64, in lines; the library also tries it with a final newline, which frameworks strip.
A challenge is answered with an HMAC under the same key, so only short hex is answered, and a
payload of that form is rejected.
Source: the package braintree, `webhook_notification_gateway.py` and `webhook_testing.py`.
"""

import binascii
import re
from base64 import decodebytes, encodebytes
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final
from urllib.parse import urlencode

from webhook_inbox.domain.errors import Reason, Rejected
from webhook_inbox.domain.json_path import form_field
from webhook_inbox.domain.model import Delivery
from webhook_inbox.domain.provider import Answer, Facts, Provider, Sample, Sent
from webhook_inbox.providers.schemes.builder import build_provider
from webhook_inbox.providers.schemes.generic import settings as given
from webhook_inbox.providers.schemes.handshakes import as_text, computes
from webhook_inbox.providers.schemes.identity.event_identity import (
    Finder,
    Naming,
    Reading,
    hash_of,
    in_query,
)
from webhook_inbox.providers.schemes.signatures import keys
from webhook_inbox.providers.schemes.signatures.header_formats import Claim
from webhook_inbox.providers.schemes.signatures.hmac import Hmac

SETTINGS: Final = frozenset({"public_id"})
EXAMPLE: Final = {"public_id": "integration_public_key"}
SIGNATURE: Final = "bt_signature"
PAYLOAD: Final = "bt_payload"
CHALLENGE: Final = re.compile(r"[a-f0-9]{20,32}", re.ASCII)
KIND: Final = re.compile(r"<kind>([a-z0-9_]+)</kind>", re.ASCII)
TIME: Final = re.compile(r"<timestamp[^<>]*>([^<>]+)</timestamp>", re.ASCII)
FACTS: Final = Facts(
    title="Braintree",
    scheme="HMAC-SHA1 over the form's `bt_payload`, hex, keyed with the private key's SHA-1",
    event_id="the payload's hash: it has none",
    handshake="`bt_challenge`: answered with its HMAC, where `public_id` is set",
    key_from="the API's private key; `public_id` is the public key beside it",
)


@dataclass(frozen=True, slots=True)
class KeyPairs:
    """A list of `publicKey|signature`; only those of the configured public key count."""

    public_id: str

    def read(self, value: str) -> Claim:
        """See `Layout`."""
        pairs = [item.partition("|") for item in value.split("&")]
        signed = [(name, text) for name, _, text in pairs if text]
        if not signed:
            raise Rejected(Reason.MALFORMED, f"{SIGNATURE} holds no signature")
        ours = tuple(text for name, text in signed if self.public_id in {"", name})
        if not ours:
            raise Rejected(Reason.INVALID_SIGNATURE, "no signature is of our public key")
        return Claim(ours)

    def write(self, signature: str, timestamp: str) -> str:  # noqa: ARG002 - part of Layout
        """See `Layout`."""
        return f"{self.public_id}|{signature}"


def provider(settings: Mapping[str, Any]) -> Provider:
    """Returns the provider of one merchant; without `public_id` challenges are not answered."""
    public_id = given.text(settings, "public_id", default="")
    scheme = Hmac(
        find=lambda delivery: form_field(delivery, SIGNATURE),
        layout=KeyPairs(public_id),
        signs=_payloads,
        algorithm="sha1",
        key=keys.sha1_of,
    )

    def compose(sample: Sample, secret: str, now: datetime) -> Sent:
        del now  # signed as part of the sample, where it is
        payload = encodebytes(sample.body)
        signature = scheme.layout.write(scheme.signature(secret, payload), "")
        form = urlencode({SIGNATURE: signature, PAYLOAD: payload})
        return Sent({"content-type": "application/x-www-form-urlencoded"}, form.encode())

    def answer(challenge: str, secret: str, _: Delivery) -> Answer:
        return as_text(scheme.layout.write(scheme.signature(secret, challenge.encode()), ""))

    return build_provider(
        "braintree",
        scheme,
        Naming(id=(_hash,), type=(_in_xml(KIND),), occurred_at=(_in_xml(TIME),)),
        facts=FACTS,
        compose=compose,
        guard=None,
        canonical=_payload,
        greet=computes(in_query("bt_challenge"), answer, shape=CHALLENGE) if public_id else None,
    )


def _payloads(delivery: Delivery) -> Sequence[bytes]:
    payload = form_field(delivery, PAYLOAD)
    if not payload:
        raise Rejected(Reason.MALFORMED, f"the form has no {PAYLOAD}, or several")
    if CHALLENGE.fullmatch(payload):
        raise Rejected(Reason.INVALID_SIGNATURE, "a challenge's answer signs no payload")
    raw = payload.encode(errors="surrogatepass")
    return [raw, raw + b"\n"]


def _in_xml(pattern: re.Pattern[str]) -> Finder:
    """Finds the first match; markup inside a value is escaped, so it never matches."""

    def find(reading: Reading) -> object:
        try:
            raw = decodebytes((form_field(reading.delivery, PAYLOAD) or "").encode())
        except (binascii.Error, ValueError):
            return None
        found = pattern.search(raw.decode(errors="replace"))
        return found[1] if found else None

    return find


def _hash(reading: Reading) -> object:
    """Identifies a notification by its payload's hash."""
    if _in_xml(KIND)(reading) is None:
        return None
    return hash_of(_payload)(reading)


def _payload(delivery: Delivery) -> bytes:
    """Returns what is signed of a form, without the line break that may be lost."""
    return (form_field(delivery, PAYLOAD) or "").rstrip("\n").encode()
