"""Slack: `X-Slack-Signature: v0=<hex>` over `v0:<seconds>:<body>`.

One endpoint receives events as JSON, and slash commands and interactions as forms. Only events have
an id. A command or interaction is identified by its `trigger_id`, anything else by its content.
Source: slack-sdk `signature/`; Slack's pages on verifying requests and on the Events API.
"""

from datetime import datetime
from typing import Final

from webhook_inbox.domain.json_path import at
from webhook_inbox.domain.model import Delivery
from webhook_inbox.domain.provider import Answer, Facts, Sample
from webhook_inbox.providers.schemes.builder import build_provider
from webhook_inbox.providers.schemes.identity.event_identity import (
    Naming,
    Reading,
    content_hash,
    header,
    in_form,
    in_json,
)
from webhook_inbox.providers.schemes.signatures.header_formats import Whole
from webhook_inbox.providers.schemes.signatures.hmac import Hmac
from webhook_inbox.providers.schemes.signatures.signed_content import Template
from webhook_inbox.providers.schemes.signatures.tolerance import Window

SCHEME: Final = Hmac(
    headers=("x-slack-signature",),
    layout=Whole("v0="),
    signs=Template.parse("v0:{timestamp}:{body}"),
    window=Window(headers=("x-slack-request-timestamp",)),
)


def _handshake(delivery: Delivery, _: str) -> Answer | None:
    """Answers `url_verification`, which Slack signs like an event."""
    if b"url_verification" not in delivery.body:  # avoids parsing every other body twice
        return None
    document = Reading(delivery).document
    challenge = at(document, "challenge")
    if at(document, "type") != "url_verification" or not isinstance(challenge, str):
        return None
    return Answer(200, challenge.encode(errors="replace"))


def _trigger(reading: Reading) -> object:
    return reading.form.get("trigger_id") or at(reading.payload, "trigger_id")


NAMING: Final = Naming(
    id=(in_json("event_id"), _trigger, content_hash),
    type=(
        in_json("event.type"),
        in_json("type"),
        in_form("command"),
        lambda reading: at(reading.payload, "type"),
    ),
    occurred_at=(in_json("event_time"),),
    retry=(header("x-slack-retry-num"),),
    retry_reason=(header("x-slack-retry-reason"),),
)


def _sign(sample: Sample, secret: str, now: datetime) -> dict[str, str]:
    json = sample.body.lstrip().startswith(b"{")
    kind = "application/json" if json else "application/x-www-form-urlencoded"
    return SCHEME.sign(sample, secret, now) | {"content-type": kind}


PROVIDER: Final = build_provider(
    "slack",
    SCHEME,
    NAMING,
    sign=_sign,
    handshake=_handshake,
    # A slash command shows the user an error for any status but 200.
    accepted_status=200,
    facts=Facts(
        title="Slack",
        scheme="HMAC-SHA256 over `v0:{timestamp}:{body}`, hex",
        window="5 minutes",
        event_id="`event_id`; of commands and interactions `trigger_id`",
        handshake="`url_verification`, signed: the challenge is sent back",
        answer_within="3 s",
        retries="3: at once, after 1 and 5 minutes",
        key_from="the app's signing secret, on its Basic Information page",
    ),
)
