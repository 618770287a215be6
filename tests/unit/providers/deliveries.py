"""Deliveries as the providers send them, and ways to break them."""

import base64
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from webhook_inbox import providers
from webhook_inbox.domain.errors import Reason, Rejected
from webhook_inbox.domain.manifest import SourceSpec
from webhook_inbox.domain.model import Delivery
from webhook_inbox.domain.provider import Identity, Provider, Sample, Verified

NOW = datetime(2026, 11, 21, 8, 0, 0, tzinfo=UTC)
# Base64 of "not a secret, only a test": a key for every scheme, whatever form its secrets have.
SECRET = base64.b64encode(b"not a secret, only a test").decode()
OTHER = base64.b64encode(b"another one, no secret either").decode()

ACME: Mapping[str, Any] = {
    "signature": {
        "header": "X-Acme-Signature",
        "prefix": "sha256=",
        "signs": "{timestamp}.{body}",
    },
    "timestamp": {"header": "X-Acme-Timestamp", "tolerance": "5m"},
    "event_id": {"header": "X-Acme-Event-Id"},
    "event_type": {"json": "type"},
}
SETTINGS: Mapping[str, Mapping[str, Any]] = {"hmac": ACME}
SAMPLES = {
    "cycles": Sample(
        "evt_1",
        "budget.exhausted",
        b'{"event_id":"evt_1","event_type":"budget.exhausted","timestamp":"2026-11-21T07:59:58Z"}',
    ),
    "github": Sample("72d3162e-cc78", "issues.opened", b'{"action":"opened","n":"caf\xc3\xa9"}'),
    "hmac": Sample("acme-1", "order.shipped", b'{"type":"order.shipped"}'),
    "shopify": Sample("98880550-7158", "orders/create", b'{"id":820982911946154508}'),
    "slack": Sample(
        "Ev0PV52K25",
        "app_mention",
        b'{"type":"event_callback","event_id":"Ev0PV52K25","event":{"type":"app_mention"},'
        b'"event_time":1795248000}',
    ),
    "standard-webhooks": Sample("msg_1", "invoice.paid", b'{"type":"invoice.paid"}'),
    "stripe": Sample(
        "evt_1", "invoice.paid", b'{"id":"evt_1","type":"invoice.paid","created":1795248000}'
    ),
}
SIGNATURES = {
    "cycles": "x-cycles-signature",
    "github": "x-hub-signature-256",
    "hmac": "x-acme-signature",
    "shopify": "x-shopify-hmac-sha256",
    "slack": "x-slack-signature",
    "standard-webhooks": "webhook-signature",
    "stripe": "stripe-signature",
}
NAMES = sorted(SAMPLES)
TIMED = ["hmac", "slack", "standard-webhooks", "stripe"]


def provider_of(provider_name: str, settings: Mapping[str, Any] | None = None) -> Provider:
    given = SETTINGS.get(provider_name, {}) if settings is None else settings
    return providers.load(SourceSpec("it", provider_name, "it", settings=given))


def delivery(
    headers: Mapping[str, str], body: bytes, *, at: datetime = NOW, method: str = "POST"
) -> Delivery:
    lowered = {name.lower(): value for name, value in headers.items()}
    return Delivery("it", method, "/webhooks/it", "", lowered, body, at)


def signed(
    provider_name: str, *, sample: Sample | None = None, secret: str = SECRET, at: datetime = NOW
) -> Delivery:
    """Returns a valid delivery, received the moment it was signed."""
    chosen = sample or SAMPLES[provider_name]
    return delivery(provider_of(provider_name).sign(chosen, secret, at), chosen.body, at=at)


def with_header(valid: Delivery, name: str, value: str | None) -> Delivery:
    """Returns the delivery with one header changed, or left out."""
    rest = {key: text for key, text in valid.headers.items() if key != name}
    return replace(valid, headers=rest if value is None else {**rest, name: value})


def later(valid: Delivery, seconds: float) -> Delivery:
    return replace(valid, received_at=valid.received_at + timedelta(seconds=seconds))


def verdict(
    provider: Provider, sent: Delivery, secrets: tuple[str, ...] = (SECRET,)
) -> Verified | Reason:
    """Returns what verifying gives; anything but Verified or Rejected is a test's failure."""
    try:
        return provider.verify(sent, secrets)
    except Rejected as error:
        return error.reason


def name_of(provider: Provider, sent: Delivery) -> Identity | Reason:
    try:
        return provider.identify(replace(sent, verified=True))
    except Rejected as error:
        return error.reason
