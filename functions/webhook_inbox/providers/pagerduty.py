"""PagerDuty v3: `X-PagerDuty-Signature: v1=<hex>,v1=<hex>` over the body, one per live secret.

PagerDuty's library also accepts upper-case hex; this provider accepts lower case only. An empty
body is malformed. The statuses are those that the library recommends.
Source: PagerDuty/go-pagerduty `webhookv3/webhookv3.go` and its test.
"""

from collections.abc import Sequence
from typing import Final

from webhook_inbox.domain.errors import Reason, Rejected
from webhook_inbox.domain.model import Delivery
from webhook_inbox.domain.provider import STATUSES, Facts, Verified
from webhook_inbox.providers.schemes.builder import build_provider
from webhook_inbox.providers.schemes.identity.event_identity import Naming, in_json
from webhook_inbox.providers.schemes.signatures.header_formats import VersionedSignatures
from webhook_inbox.providers.schemes.signatures.hmac import Hmac

SCHEME: Final = Hmac(
    headers=("x-pagerduty-signature",), layout=VersionedSignatures("v1", separator=",", mark="=")
)


def _verify(delivery: Delivery, secrets: Sequence[str]) -> Verified:
    if not delivery.body:
        raise Rejected(Reason.MALFORMED, "PagerDuty never sends an empty body")
    return SCHEME.verify(delivery, secrets)


PROVIDER: Final = build_provider(
    "pagerduty",
    SCHEME,
    Naming(
        id=(in_json("event.id"),),
        type=(in_json("event.event_type"),),
        occurred_at=(in_json("event.occurred_at"),),
    ),
    verify=_verify,
    kept_headers=frozenset({"x-webhook-id", "x-webhook-subscription"}),
    # Either stops PagerDuty's retries; the rejected delivery is stored here.
    statuses={**STATUSES, Reason.INVALID_SIGNATURE: 403, Reason.MISSING_SIGNATURE: 400},
    facts=Facts(
        title="PagerDuty v3",
        scheme="HMAC-SHA256 over the body, hex, one signature for each live secret",
        event_id="`event.id`",
        key_from="the webhook subscription's secret",
    ),
)
