"""Trello: `X-Trello-Webhook: <base64>`, HMAC-SHA1 over the body, then the callback URL.

The URL is the one that the webhook was created with, query included. Trello first probes it with an
unsigned HEAD.
Source: hookdeck's notes; webhook-co's configuration; Atlassian's page on Trello's webhooks.
"""

from collections.abc import Mapping
from typing import Any, Final

from webhook_inbox.domain.provider import Facts, Provider
from webhook_inbox.providers.schemes.builder import build_provider
from webhook_inbox.providers.schemes.generic import settings as given
from webhook_inbox.providers.schemes.handshakes import probed
from webhook_inbox.providers.schemes.identity.event_identity import Naming, in_json
from webhook_inbox.providers.schemes.signatures.encodings import base64
from webhook_inbox.providers.schemes.signatures.hmac import Hmac
from webhook_inbox.providers.schemes.signatures.signed_content import Template

SETTINGS: Final = frozenset({"url"})
EXAMPLE: Final = {"url": "https://inbox.example/webhooks/trello"}
FACTS: Final = Facts(
    title="Trello",
    scheme="HMAC-SHA1 over the body and the callback URL, base64",
    event_id="`action.id`",
    handshake="HEAD when the webhook is made: answered 200",
    retries="3: after 30, 60 and 120 s; disabled after 30 days of failures",
    key_from="the API secret, on the Power-Up's API key page",
)


def provider(settings: Mapping[str, Any]) -> Provider:
    """Returns Trello's provider; `url` is the callback URL without its query."""
    scheme = Hmac(
        headers=("x-trello-webhook",),
        signs=Template.parse("{body}{url}"),
        algorithm="sha1",
        encoding=base64,
        url=given.public_url(settings),
    )
    naming = Naming(
        id=(in_json("action.id"),),
        type=(in_json("action.type"),),
        occurred_at=(in_json("action.date"),),
    )
    return build_provider(
        "trello",
        scheme,
        naming,
        facts=FACTS,
        # A JSON object does not begin with another, so none of the body can be moved into the URL.
        guard=None,
        greet=probed("HEAD"),
        accepted_status=200,
    )
