"""PayPal: RSA over `{id}|{time}|{webhook id}|{CRC-32 of the body}`, certificate fetched.

The certificate is fetched from PayPal's own host over TLS, which replaces checking its chain; its
name and dates are checked. A CRC-32 is not a cryptographic hash: a captured signature fits other
bodies. The body must therefore be JSON, and a signature is guarded, for one event id, and expires
after four days; the library allows any age. It also accepts SHA-1; here `PAYPAL-AUTH-ALGO` must be
SHA-256.
Source: paypal/PayPal-Python-SDK `notifications.py` and its tests; PayPal's page on webhooks.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Final
from zlib import crc32

from cryptography.x509 import load_pem_x509_certificate
from cryptography.x509.oid import NameOID

from webhook_inbox.domain.bounded_json import is_bounded
from webhook_inbox.domain.errors import Reason, Rejected
from webhook_inbox.domain.json_path import document
from webhook_inbox.domain.model import Delivery
from webhook_inbox.domain.ports import Fetch
from webhook_inbox.domain.provider import Facts, Provider, Sample, Verified
from webhook_inbox.providers.schemes.builder import build_provider
from webhook_inbox.providers.schemes.generic import settings as given
from webhook_inbox.providers.schemes.http import encoded, pinned, required
from webhook_inbox.providers.schemes.identity.event_identity import Naming, in_json
from webhook_inbox.providers.schemes.signatures.asymmetric import Rsa
from webhook_inbox.providers.schemes.signatures.tolerance import Window, iso

SETTINGS: Final = frozenset({"webhook_id", "environment"})
EXAMPLE: Final = {"webhook_id": "4JH86294D6297924G"}
ID: Final = "paypal-transmission-id"
TIME: Final = "paypal-transmission-time"
SIGNATURE: Final = "paypal-transmission-sig"
CERTIFICATE: Final = "paypal-cert-url"
ALGORITHM: Final = "paypal-auth-algo"
SHA256: Final = "SHA256withRSA"
# Anyone can create an account of the sandbox: its certificates prove nothing to another source.
HOSTS: Final[Mapping[str, re.Pattern[str]]] = {
    "production": re.compile(r"api(-m)?\.paypal\.com", re.ASCII),
    "sandbox": re.compile(r"api(-m)?\.sandbox\.paypal\.com", re.ASCII),
}
OWNERS: Final[Mapping[str, re.Pattern[str]]] = {
    "production": re.compile(r"messageverificationcerts\.paypal\.com", re.ASCII),
    "sandbox": re.compile(r"messageverificationcerts(\.sandbox)?\.paypal\.com", re.ASCII),
}
PATH: Final = re.compile(r"/v1/notifications/certs/[A-Za-z0-9_-]{1,128}", re.ASCII)
SAMPLE_URL: Final = "https://{}/v1/notifications/certs/CERT-sample"
SAMPLE_HOSTS: Final = {"production": "api.paypal.com", "sandbox": "api.sandbox.paypal.com"}
# Shorter than the guard's life. PayPal retries for three days.
WINDOW: Final = Window(
    headers=(TIME,), clockwork=iso, tolerance=timedelta(days=4), ahead=timedelta(minutes=15)
)
NAMING: Final = Naming(
    id=(in_json("id"),), type=(in_json("event_type"),), occurred_at=(in_json("create_time"),)
)
FACTS: Final = Facts(
    title="PayPal",
    body="partly",
    scheme="RSA PKCS#1 v1.5 with SHA-256 over a CRC-32 of the body, certificate fetched",
    window="4 days back, 15 minutes ahead",
    event_id="`id`",
    retries="up to 25 times over 3 days",
    key_from="none: give the webhook's id, from the app's page, as `webhook_id`; in the sandbox,"
    ' also give `environment = "sandbox"`',
    resend="the dashboard, or `POST /v1/notifications/webhooks-events/{id}/resend`",
)


def provider(settings: Mapping[str, Any]) -> Provider:
    """Returns the provider of one webhook, whose id is part of what is signed.

    It is in `production` unless `environment` says otherwise.
    """
    environment = given.choice(settings, "environment", of=tuple(HOSTS))
    scheme = Rsa(
        headers=(SIGNATURE,),
        signs=partial(_signs, given.text(settings, "webhook_id")),
        window=WINDOW,
        ids=(ID,),
    )

    def sign(sample: Sample, secret: str, now: datetime) -> dict[str, str]:
        url = SAMPLE_URL.format(SAMPLE_HOSTS[environment])
        sent = {CERTIFICATE: url, ALGORITHM: SHA256}
        return scheme.sign(sample, secret, now) | sent

    return build_provider(
        "paypal",
        scheme,
        NAMING,
        facts=FACTS,
        verify=partial(_verify, scheme, OWNERS[environment]),
        precheck=partial(_precheck, scheme),
        sign=sign,
        needs_secret=False,
        fetches=partial(_certificate, HOSTS[environment]),
        signature_headers=scheme.reads | {CERTIFICATE, ALGORITHM},
    )


def _signs(webhook: str, delivery: Delivery) -> Sequence[bytes]:
    id_, time = (required(delivery.headers, (name,)) for name in (ID, TIME))
    return [encoded(f"{id_}|{time}|{webhook}|{crc32(delivery.body)}")]


def _precheck(scheme: Rsa, delivery: Delivery, keys: Sequence[str]) -> None:
    _algorithm(delivery)
    scheme.precheck(delivery, keys)
    scheme.contents(delivery, "")
    # A larger body is parsed only after its signature is verified.
    if is_bounded(delivery.body):
        _event(delivery)


def _verify(
    scheme: Rsa, owner: re.Pattern[str], delivery: Delivery, keys: Sequence[str]
) -> Verified:
    _algorithm(delivery)
    for text in keys:
        _certified(text, owner, delivery.received_at)
    verified = scheme.verify(delivery, keys)
    _event(replace(delivery, verified=True))
    return verified


def _algorithm(delivery: Delivery) -> None:
    if delivery.headers.get(ALGORITHM) != SHA256:
        raise Rejected(Reason.MALFORMED, f"the {ALGORITHM} header is not {SHA256}")


def _event(delivery: Delivery) -> None:
    if not isinstance(document(delivery), dict):
        raise Rejected(Reason.MALFORMED, "the body is not a PayPal event")


def _certificate(host: re.Pattern[str], delivery: Delivery, _: Sequence[str]) -> Fetch:
    if not delivery.headers.get(SIGNATURE):
        raise Rejected(Reason.MISSING_SIGNATURE, f"no {SIGNATURE} header")
    return pinned(delivery.headers.get(CERTIFICATE), host=host, path=PATH)


def _certified(text: str, owner: re.Pattern[str], now: datetime) -> None:
    """Checks the owner and the dates of a certificate; raises Rejected."""
    try:
        certificate = load_pem_x509_certificate(text.encode())
        named = certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME)
    except ValueError:
        return  # not a certificate; the scheme decides whether it is a key
    if not any(owner.fullmatch(str(name.value)) for name in named):
        raise Rejected(
            Reason.INVALID_SIGNATURE, "the certificate is not PayPal's message certificate"
        )
    if not certificate.not_valid_before_utc <= now <= certificate.not_valid_after_utc:
        raise Rejected(Reason.INVALID_SIGNATURE, "the certificate is not valid at this time")
