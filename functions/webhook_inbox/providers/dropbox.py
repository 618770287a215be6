"""Dropbox: `X-Dropbox-Signature: <hex>` over the body; a challenge by GET is echoed.

A notification names the accounts whose files changed, without id or time, and the next one for the
same account is identical. Each arrival is therefore an event of its own: deduplicated by content,
every change after the first would be lost. A repeated or replayed notification costs one look-up
that finds no change.
Source: dropbox/mdwebhook `app.py`; Dropbox's webhooks reference.
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
