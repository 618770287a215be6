"""Dropbox: `X-Dropbox-Signature: <hex>` over the body; a challenge by GET is echoed.

A notification says whose files changed and nothing else: no id, no time, and the next one for the
same account is the same byte for byte. So each arrival is an event of its own. By its content it
would be taken for a duplicate, and every change after the first be lost; what a repeated or a
captured one costs is one look that finds nothing new. Source: dropbox/mdwebhook `app.py`.
"""

from typing import Final

from webhook_inbox.domain.provider import Facts
from webhook_inbox.domain.timestamps import to_ms
from webhook_inbox.providers.schemes.builder import build_provider
from webhook_inbox.providers.schemes.handshakes import greets
from webhook_inbox.providers.schemes.identity.event_identity import (
    Naming,
    Reading,
    content_hash,
    fixed,
    in_query,
)
from webhook_inbox.providers.schemes.signatures.hmac import Hmac


def _arrival(reading: Reading) -> str:
    return f"{content_hash(reading)}@{to_ms(reading.delivery.received_at)}"


PROVIDER: Final = build_provider(
    "dropbox",
    Hmac(headers=("x-dropbox-signature",)),
    Naming(id=(_arrival,), type=(fixed("list_folder"),)),
    greet=greets(in_query("challenge"), method="GET"),
    facts=Facts(
        title="Dropbox",
        scheme="HMAC-SHA256 over the body, hex",
        event_id="the body's hash and the time of arrival: equal notifications are different news",
        handshake="GET with `challenge`, echoed as plain text",
        answer_within="10 s",
        key_from="the app secret, in the App Console",
        resend="none: notifications are empty; `list_folder/continue` lists what changed",
    ),
)
