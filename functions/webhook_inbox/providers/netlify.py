"""Netlify: a JWT (HS256) in `X-Webhook-Signature` with the body's SHA-256.

It has neither time nor id, so it never expires.
Source: webhook-co's adapter for Netlify.
"""

from typing import Final

from webhook_inbox.domain.provider import Facts
from webhook_inbox.providers.schemes.builder import build_provider
from webhook_inbox.providers.schemes.identity.event_identity import (
    Naming,
    content_hash,
    header,
    in_json,
)
from webhook_inbox.providers.schemes.jwt.jwt import Jwt

PROVIDER: Final = build_provider(
    "netlify",
    Jwt(header="x-webhook-signature", claims={"iss": "netlify"}, body_hash="sha256"),
    # A deploy keeps its id in every state, so the content identifies the event.
    Naming(id=(content_hash,), type=(header("x-netlify-event"), in_json("state"))),
    facts=Facts(
        title="Netlify",
        scheme="JWT, HS256, claims `iss` and the body's `sha256`",
        event_id="the body's hash: a deploy keeps its `id` from state to state",
        unsigned="type `X-Netlify-Event`",
        key_from="the JWS secret token that you choose in the notification's settings",
    ),
)
