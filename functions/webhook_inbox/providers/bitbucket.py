"""Bitbucket Cloud: `X-Hub-Signature: sha256=<hex>` over the body; neither id nor time is signed.

GitHub (SHA-1) and Intercom (SHA-1) use the same header name, so the provider determines the hash,
not the header. A webhook without a secret sends no signature and is rejected.
Source: Atlassian's vector for Bitbucket webhooks, as public code quotes it; bitbucket.org
`blog/2849`.
"""

from typing import Final

from webhook_inbox.domain.provider import Facts
from webhook_inbox.providers.schemes.builder import build_provider
from webhook_inbox.providers.schemes.identity.event_identity import Naming, header, repeats
from webhook_inbox.providers.schemes.signatures.header_formats import Whole
from webhook_inbox.providers.schemes.signatures.hmac import Hmac

PROVIDER: Final = build_provider(
    "bitbucket",
    Hmac(headers=("x-hub-signature",), layout=Whole("sha256=")),
    Naming(
        id=(header("x-request-uuid"),),
        type=(header("x-event-key"),),
        retry=(repeats(header("x-attempt-number")),),
    ),
    kept_headers=frozenset({"x-attempt-number", "x-hook-uuid"}),
    facts=Facts(
        title="Bitbucket Cloud",
        scheme="HMAC-SHA256 over the body, hex after `sha256=`",
        event_id="`X-Request-UUID`",
        unsigned="id `X-Request-UUID`, type `X-Event-Key`",
        key_from="free text that you choose in the webhook's settings; optional there",
        resend="Resend request, on the webhook's request details page",
    ),
)
