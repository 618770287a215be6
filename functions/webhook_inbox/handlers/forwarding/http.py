"""Handing events on over HTTP."""

from string import punctuation
from typing import Final
from urllib.parse import quote

from webhook_inbox.domain.errors import Permanent
from webhook_inbox.handlers.context import Context
from webhook_inbox.handlers.event import Event
from webhook_inbox.handlers.forwarding.cloud_event import rfc3339
from webhook_inbox.handlers.router import ReadyMade

# What may stand in a header; the rest is written as in a URL.
_PLAIN: Final = f"{punctuation} "


def forward(destination: str, path: str = "") -> ReadyMade:
    """Returns a handler that POSTs the body, as it came, to a destination of inbox.toml.

    With `sign` in the destination's table it is signed as Standard Webhooks, so that a service in
    any language verifies it with a library it has, and knows a repetition by `webhook-id` or by
    the idempotency key. A service that knows no keys is said to with `idempotency = false`: what
    is in doubt there is held for a person. Needs no right.

    Args:
        destination: its name.
        path: below the destination's base URL.
    """

    def send(event: Event, ctx: Context) -> None:
        if ctx.destination(destination).key_field:
            raise Permanent(
                f"forward sends a body as it came, and destination {destination!r} wants its key in"
                ' there: set idempotency = { header = "Idempotency-Key" }'
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
