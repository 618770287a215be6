"""Vercel: `x-vercel-signature: <hex>`, HMAC-SHA1 over the body.

A log drain first sends an unsigned request and expects the token that Vercel shows beside the
endpoint in a response header. Store the token with the secret only while you set up the drain:
otherwise an unsigned delivery is rejected.
Source: hookdeck's notes on Vercel.
"""

from typing import Final

from webhook_inbox.domain.provider import Facts
from webhook_inbox.providers.schemes.builder import build_provider
from webhook_inbox.providers.schemes.handshakes.presets import Endpoint, shows_token
from webhook_inbox.providers.schemes.identity.event_identity import Naming, in_json
from webhook_inbox.providers.schemes.signatures import keys
from webhook_inbox.providers.schemes.signatures.hmac import Hmac

SIGNATURE: Final = "x-vercel-signature"

PROVIDER: Final = build_provider(
    "vercel",
    Hmac(headers=(SIGNATURE,), algorithm="sha1", key=keys.of_part("secret")),
    Naming(id=(in_json("id"),), type=(in_json("type"),), occurred_at=(in_json("createdAt"),)),
    greet=shows_token("x-vercel-verify", Endpoint((SIGNATURE,))),
    facts=Facts(
        title="Vercel",
        scheme="HMAC-SHA1 over the body, hex",
        event_id="`id`",
        handshake="a log drain's first, unsigned request: answered with the `verify_token` in"
        " `x-vercel-verify`",
        key_from="the webhook's secret, shown when it is made, or the integration's; for a log"
        ' drain with its token: `{"secret":"…","verify_token":"…"}`',
    ),
)
