"""WorkOS: `WorkOS-Signature: t=<milliseconds>, v1=<hex>` over `{t}.{body}`.

A comma and a space separate time and signature. WorkOS's SDK rejects any other number of parts, so
there is never a second signature.
Source: workos 10 (PyPI) `webhooks/_verification.py`.
"""

from datetime import timedelta
from typing import Final

from webhook_inbox.domain.provider import Facts
from webhook_inbox.providers.schemes.builder import build_provider
from webhook_inbox.providers.schemes.identity.event_identity import Naming, in_json
from webhook_inbox.providers.schemes.signatures.header_formats import Pairs
from webhook_inbox.providers.schemes.signatures.hmac import Hmac
from webhook_inbox.providers.schemes.signatures.signed_content import Template
from webhook_inbox.providers.schemes.signatures.tolerance import Window, milliseconds

PROVIDER: Final = build_provider(
    "workos",
    Hmac(
        headers=("workos-signature",),
        layout=Pairs("v1", "t", separator=", ", sole=True),
        signs=Template.parse("{timestamp}.{body}"),
        window=Window(tolerance=timedelta(seconds=180), clockwork=milliseconds),
    ),
    Naming(id=(in_json("id"),), type=(in_json("event"),), occurred_at=(in_json("created_at"),)),
    facts=Facts(
        title="WorkOS",
        scheme="HMAC-SHA256 over `{timestamp}.{body}`, hex",
        window="3 minutes",
        event_id="`id`",
        key_from="the endpoint's secret, on the dashboard's Webhooks page",
    ),
)
