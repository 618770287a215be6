"""Vonage: a JWT (HS256) in `Authorization: Bearer …` with the body's SHA-256.

Vonage's library verifies only the token's signature, so the body could be changed; here the claim
`payload_hash` is required. All states of a message share its id.
Source: vonage-jwt 1 (PyPI) `verify_jwt.py`.
"""

from typing import Final

from webhook_inbox.domain.provider import Facts
from webhook_inbox.providers.schemes.builder import build_provider
from webhook_inbox.providers.schemes.identity.event_identity import (
    Naming,
    content_hash,
    fixed,
    in_json,
    joined,
)
from webhook_inbox.providers.schemes.jwt.jwt import Jwt

SCHEME: Final = Jwt(
    header="authorization", prefix="Bearer ", claims={"iss": "Vonage"}, body_hash="payload_hash"
)

PROVIDER: Final = build_provider(
    "vonage",
    SCHEME,
    Naming(
        id=(
            joined(in_json("message_uuid"), in_json("status")),
            in_json("message_uuid"),
            joined(in_json("uuid"), in_json("status")),
            SCHEME.claim("jti"),
            content_hash,
        ),
        type=(in_json("status"), fixed("request")),
        occurred_at=(in_json("timestamp"), SCHEME.claim("iat")),
    ),
    facts=Facts(
        title="Vonage",
        scheme="JWT, HS256, claims `iss` and the body's `payload_hash`",
        window="as long as the token, where it claims `exp`",
        event_id="`message_uuid` or a call's `uuid`, with its `status`; else the token's `jti`",
        key_from="the account's signature secret, in the dashboard's API settings",
    ),
)
