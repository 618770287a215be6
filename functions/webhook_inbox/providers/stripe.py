"""Stripe: `Stripe-Signature: t=<seconds>,v1=<hex>`, more `v1` while a secret is rolled.

Source: stripe-python `_webhook.py`, which takes any time in the future; we do not.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from webhook_inbox.recipe import Recipe, Sample
from webhook_inbox.schemes.layouts import Pairs
from webhook_inbox.schemes.mac import Hmac
from webhook_inbox.schemes.naming import Naming, in_json
from webhook_inbox.schemes.templates import Template
from webhook_inbox.schemes.window import Window

# The secret's `whsec_…` is the key as it stands, nothing in it is base64.
SCHEME: Final = Hmac(
    headers=("stripe-signature",),
    layout=Pairs(signature="v1", timestamp="t"),
    signs=Template.parse("{timestamp}.{body}"),
    window=Window(),
)
NAMING: Final = Naming(
    id=(in_json("id"),), type=(in_json("type"),), occurred_at=(in_json("created"),)
)


def recipe(settings: Mapping[str, Any]) -> Recipe:  # noqa: ARG001 - Stripe has no settings
    """Returns Stripe's recipe."""
    return Recipe(
        name="stripe",
        verify=SCHEME.verify,
        signature_headers=SCHEME.reads,
        identify=NAMING.identify,
        sign=_sign,
        # Counts the endpoints that have not answered yet, so a retry may carry another number.
        volatile=("pending_webhooks",),
    )


def _sign(sample: Sample, secret: str, now: datetime) -> dict[str, str]:
    headers = SCHEME.sign(sample, secret, now)
    return headers | {"content-type": "application/json; charset=utf-8"}
