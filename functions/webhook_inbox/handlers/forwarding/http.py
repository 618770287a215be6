"""Forwards events over HTTP."""

from string import punctuation
from typing import Final
from urllib.parse import quote

from webhook_inbox.domain.errors import Permanent
from webhook_inbox.handlers.context import Context
from webhook_inbox.handlers.event import Event
from webhook_inbox.handlers.forwarding.cloud_event import rfc3339
from webhook_inbox.handlers.router import ReadyMade

# Characters allowed in a header value; others are percent-encoded.
_PLAIN: Final = f"{punctuation} "


def forward(destination: str, path: str = "") -> ReadyMade:
    """Returns a handler that POSTs the unchanged body to a destination of inbox.toml.

    With `sign` set on the destination, the request is signed as Standard Webhooks; the receiver
    detects a repetition by `webhook-id` or the idempotency key. Set `idempotency = false` for a
    service that honours neither: an effect in doubt is then held for a person.

    Args:
        destination: the destination's name.
        path: the path below its base URL.
    """

    def send(event: Event, ctx: Context) -> None:
        if ctx.destination(destination).key_field:
            raise Permanent(
                f"forward sends the body unchanged, and destination {destination!r} expects its key"
                ' in the body: set idempotency = { header = "Idempotency-Key" }'
            )
        told = {
            "content-type": event.headers.get("content-type", "application/octet-stream"),
            "inbox-source": event.source,
            "inbox-event-id": event.id,
            "inbox-event-type": event.type,
            "inbox-received-at": rfc3339(event.received_at),
            "inbox-attempt": str(ctx.attempt),
        }
        headers = {name: quote(value.strip(), safe=_PLAIN) for name, value in told.items()}
        ctx.http(destination).post(path, content=event.body, headers=headers, effect="forward")

    return ReadyMade(f"forward({destination!r})", send, (destination,))
