"""monday.com: a JWT (HS256) in `Authorization`, without `Bearer`; the body is not covered.

A token is valid for one endpoint (`aud`) and a few minutes; during that time a captured token can
be sent with another body. Webhooks made in the interface have no token and are rejected; create
them with an app's token.
Source: hookdeck's notes and webhook-co's adapter for monday.com; developer.monday.com `changelog`.
"""

from collections.abc import Mapping
from typing import Any, Final

from webhook_inbox.domain.provider import Facts, Provider
from webhook_inbox.providers.schemes.builder import build_provider
from webhook_inbox.providers.schemes.generic import settings as given
from webhook_inbox.providers.schemes.handshakes import as_json, greets
from webhook_inbox.providers.schemes.identity.event_identity import Naming, Reading, in_json
from webhook_inbox.providers.schemes.jwt.jwt import Jwt

SETTINGS: Final = frozenset({"url"})
EXAMPLE: Final = {"url": "https://inbox.example/webhooks/monday"}
HEADER: Final = "authorization"
NAMING: Final = Naming(
    id=(in_json("event.triggerUuid"),),
    type=(in_json("event.type"),),
    occurred_at=(in_json("event.triggerTime"),),
)
FACTS: Final = Facts(
    title="monday.com",
    body="none",
    scheme="JWT, HS256, claims `aud` (the endpoint's URL) and `exp`; covers no body",
    window="as long as the token: 5 minutes",
    event_id="`event.triggerUuid`",
    handshake="a `challenge` alone, unsigned, sent back as JSON",
    retries="once a minute for 30 minutes",
    answer_within="3 minutes",
    key_from="the app's signing secret; webhooks made in the interface are not signed",
)


def _alone(reading: Reading) -> bool:
    body = reading.document
    return isinstance(body, dict) and body.keys() == {"challenge"}


def provider(settings: Mapping[str, Any]) -> Provider:
    """Returns the provider of one endpoint; `url` is its address without a query."""
    scheme = Jwt(header=HEADER, audience=True, requires=("exp",), url=given.public_url(settings))
    return build_provider(
        "monday",
        scheme,
        NAMING,
        greet=greets(in_json("challenge"), as_json("challenge"), when=_alone),
        token_headers=frozenset({HEADER}),
        facts=FACTS,
    )
