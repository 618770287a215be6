"""Cycles: `X-Cycles-Signature: sha256=<hex>` over the body; id and time are not signed.

Source: the webhook event delivery protocol of runcycles/docs.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from webhook_inbox.recipe import Recipe, Sample
from webhook_inbox.schemes.layouts import Whole
from webhook_inbox.schemes.mac import Hmac
from webhook_inbox.schemes.naming import Naming, header, in_json

SCHEME: Final = Hmac(headers=("x-cycles-signature",), layout=Whole("sha256="))
NAMING: Final = Naming(
    id=(header("x-cycles-event-id"),),
    type=(header("x-cycles-event-type"),),
    occurred_at=(in_json("timestamp"),),
)


def recipe(settings: Mapping[str, Any]) -> Recipe:  # noqa: ARG001 - Cycles has no settings
    """Returns Cycles' recipe."""
    return Recipe(
        name="cycles",
        verify=SCHEME.verify,
        signature_headers=SCHEME.reads,
        identify=NAMING.identify,
        sign=_sign,
        guard=lambda delivery, _: delivery.body,
        kept_headers=frozenset({"x-cycles-event-id", "x-cycles-event-type", "x-cycles-trace-id"}),
    )


def _sign(sample: Sample, secret: str, now: datetime) -> dict[str, str]:
    return SCHEME.sign(sample, secret, now) | {
        "x-cycles-event-id": sample.event_id,
        "x-cycles-event-type": sample.type,
    }
