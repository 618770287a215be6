"""Discord: Ed25519 over `{timestamp}{body}`, for webhook events and for interactions.

Both products send type 1: with an `event` it is an event, without one an interaction's ping.
Discord probes endpoints with invalid signatures and expects exactly 401.
Source: discord/discord-api-docs `developers/events/webhook-events.mdx` and
`developers/interactions/overview.mdx`; the package discord-interactions.
"""

from typing import Final

from webhook_inbox.domain.errors import Reason
from webhook_inbox.domain.json_path import document
from webhook_inbox.domain.model import Delivery
from webhook_inbox.domain.provider import STATUSES, Answer, Facts
from webhook_inbox.providers.schemes.builder import build_provider
from webhook_inbox.providers.schemes.handshakes import JSON, json_answer
from webhook_inbox.providers.schemes.identity.event_identity import (
    Naming,
    content_hash,
    in_json,
    utc,
)
from webhook_inbox.providers.schemes.signatures.asymmetric import Ed25519
from webhook_inbox.providers.schemes.signatures.signed_content import Template
from webhook_inbox.providers.schemes.signatures.tolerance import Window

SCHEME: Final = Ed25519(
    headers=("x-signature-ed25519",),
    signs=Template.parse("{timestamp}{body}"),
    # Retries for ten minutes may have the first attempt's time, and no bound is documented.
    window=Window(headers=("x-signature-timestamp",), tolerance=None),
)


def _ping(delivery: Delivery, _: str) -> Answer | None:
    body = document(delivery)
    if not isinstance(body, dict) or "event" in body or isinstance(body.get("type"), bool):
        return None
    if body.get("type") == 0:
        return Answer(204, content_type=JSON)
    return json_answer({"type": 1}) if body.get("type") == 1 else None


PROVIDER: Final = build_provider(
    "discord",
    SCHEME,
    # Interactions have an id, events none.
    Naming(
        id=(in_json("id"), content_hash),
        type=(in_json("event.type"), in_json("type")),
        # Discord's own samples write it without an offset.
        occurred_at=(utc(in_json("event.timestamp")),),
    ),
    handshake=_ping,
    statuses={**STATUSES, Reason.MALFORMED: 401, Reason.STALE: 401, Reason.FUTURE: 401},
    facts=Facts(
        title="Discord",
        scheme="Ed25519 over timestamp and body, hex",
        window="signed, no bound documented",
        event_id="`id` of interactions; of events the body's hash",
        handshake='PING of type 0 (204) or 1 (`{"type":1}`), both signed',
        answer_within="3 s",
        retries="exponential for up to 10 minutes",
        key_from="the application's public key, in the developer portal",
    ),
)
