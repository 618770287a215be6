"""Twitch EventSub: `Twitch-Eventsub-Message-Signature: sha256=<hex>` over id, time and body.

The three are concatenated without separators: another time in the body could end a longer id. One
signed content is therefore valid for one event. The message type is not signed: the body
distinguishes events from verifications.
Source: hookdeck's notes and webhook-co's configuration.
"""

from datetime import datetime, timedelta
from typing import Final

from webhook_inbox.domain.json_path import at
from webhook_inbox.domain.provider import Facts, Sample
from webhook_inbox.providers.schemes.builder import build_provider
from webhook_inbox.providers.schemes.handshakes import echoes
from webhook_inbox.providers.schemes.identity.event_identity import (
    Naming,
    Reading,
    dotted,
    header,
    in_json,
)
from webhook_inbox.providers.schemes.signatures.header_formats import Whole
from webhook_inbox.providers.schemes.signatures.hmac import Hmac
from webhook_inbox.providers.schemes.signatures.signed_content import Template
from webhook_inbox.providers.schemes.signatures.tolerance import Window, iso

PREFIX: Final = "twitch-eventsub-message"
ID: Final = f"{PREFIX}-id"
STAMP: Final = f"{PREFIX}-timestamp"
KIND: Final = f"{PREFIX}-type"
RETRY: Final = f"{PREFIX}-retry"
SUBSCRIPTION: Final = "twitch-eventsub-subscription-type"
NOTIFICATION: Final = "notification"
SCHEME: Final = Hmac(
    headers=(f"{PREFIX}-signature",),
    layout=Whole("sha256="),
    signs=Template.parse("{id}{timestamp}{body}"),
    window=Window(headers=(STAMP,), tolerance=timedelta(minutes=10), clockwork=iso),
    ids=(ID,),
)


def _is_notification(reading: Reading) -> bool:
    # Entitlement grants come as a list.
    return any(at(reading.document, name) is not None for name in ("event", "events"))


def _kind(reading: Reading) -> object:
    if _is_notification(reading):
        return NOTIFICATION
    return header(KIND)(reading)


def _sign(sample: Sample, secret: str, now: datetime) -> dict[str, str]:
    kind, _, subscription = sample.type.partition(".")
    sent = {KIND: kind, SUBSCRIPTION: subscription, RETRY: "0"}
    return SCHEME.sign(sample, secret, now) | sent


PROVIDER: Final = build_provider(
    "twitch",
    SCHEME,
    Naming(
        id=(header(ID),),
        # A revocation is of the same subscription type as what it ends.
        type=(dotted(_kind, in_json("subscription.type")),),
        occurred_at=(header(STAMP),),
        retry=(header(RETRY),),
    ),
    sign=_sign,
    handshake=echoes(in_json("challenge"), when=lambda reading: not _is_notification(reading)),
    kept_headers=frozenset({KIND, SUBSCRIPTION, "twitch-eventsub-subscription-version"}),
    facts=Facts(
        title="Twitch EventSub",
        scheme="HMAC-SHA256 over `{id}{timestamp}{body}`, hex after `sha256=`",
        window="10 minutes",
        event_id="`Twitch-Eventsub-Message-Id`",
        unsigned="type `Twitch-Eventsub-Message-Type` where the body has no event",
        handshake="`webhook_callback_verification`, signed: its challenge is answered as text",
        answer_within="a few seconds",
        retries="some, then the subscription is revoked",
        key_from="10 to 100 ASCII characters that you choose when you create the subscription",
    ),
)
