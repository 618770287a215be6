"""Meta (Facebook, Instagram, WhatsApp): `X-Hub-Signature-256: sha256=<hex>` over the body.

The body escapes non-ASCII characters, so it must not be parsed and written again before
verification. The SHA-1 header `X-Hub-Signature` never counts. A delivery holds up to 1,000 changes;
several are split into deliveries of the same form with one change or message each. The endpoint is
subscribed by a GET with a token that you choose, which is not the app's secret.
Source: hookdeck's notes and webhook-co's handshake code.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from webhook_inbox.domain.errors import Reason, Rejected
from webhook_inbox.domain.json_path import at, document
from webhook_inbox.domain.model import Delivery
from webhook_inbox.domain.provider import Facts
from webhook_inbox.providers.schemes.builder import build_provider
from webhook_inbox.providers.schemes.handshakes import as_text, subscribes
from webhook_inbox.providers.schemes.identity.batches import elements
from webhook_inbox.providers.schemes.identity.event_identity import (
    Naming,
    Reading,
    content_hash,
    dotted,
    in_json,
    joined,
)
from webhook_inbox.providers.schemes.signatures import keys
from webhook_inbox.providers.schemes.signatures.header_formats import Whole
from webhook_inbox.providers.schemes.signatures.hmac import Hmac

VALUE: Final = "entry.0.changes.0.value"
MESSAGE: Final = "entry.0.messaging.0.message"
# The lists in an entry, and in the value of a change (WhatsApp).
LISTS: Final = ("changes", "messaging", "standby")
INNER_LISTS: Final = ("messages", "statuses")


def _split(delivery: Delivery) -> Sequence[Delivery] | None:
    """Returns a delivery for each change or message; None where there is one."""
    parts = [part for entry in elements(delivery, "entry") for part in _parts_of(entry)]
    if len(parts) == 1:
        return None
    whole = document(delivery)
    rest = whole if isinstance(whole, dict) else {}
    bodies = [json.dumps({**rest, "entry": [part]}, separators=(",", ":")) for part in parts]
    return [replace(delivery, body=body.encode()) for body in bodies]


def _parts_of(entry: object) -> Iterator[dict[str, Any]]:
    if not isinstance(entry, dict):
        raise Rejected(Reason.MALFORMED, "an entry of the delivery is not an object")
    for part in _one_each(entry, LISTS):
        change = at(part, "changes.0")
        value = at(change, "value")
        if not isinstance(change, dict) or not isinstance(value, dict):
            yield part
            continue
        for one in _one_each(value, INNER_LISTS):
            yield {**part, "changes": [{**change, "value": one}]}


def _one_each(holder: Mapping[str, Any], names: Sequence[str]) -> list[dict[str, Any]]:
    """Returns the object once for each element of its lists, with that element alone."""
    lists = {name: holder[name] for name in names if isinstance(holder.get(name), list)}
    rest = {key: value for key, value in holder.items() if key not in lists}
    parts = [{**rest, name: [item]} for name, items in lists.items() for item in items]
    return parts or [dict(holder)]


def _field(reading: Reading) -> object:
    """Finds the changed field; for Messenger's events, which have none, the name of their list."""
    entry = at(reading.document, "entry.0")
    listed = (name for name in LISTS[1:] if isinstance(entry, dict) and name in entry)
    return at(entry, "changes.0.field") or next(listed, None)


def _deleted(reading: Reading) -> str | None:
    return "deleted" if at(reading.document, f"{MESSAGE}.is_deleted") is True else None


PROVIDER: Final = build_provider(
    "meta",
    Hmac(headers=("x-hub-signature-256",), layout=Whole("sha256="), key=keys.of_part("secret")),
    Naming(
        id=(
            in_json(f"{VALUE}.messages.0.id"),
            # All states of a message share its id.
            joined(in_json(f"{VALUE}.statuses.0.id"), in_json(f"{VALUE}.statuses.0.status")),
            joined(in_json(f"{MESSAGE}.mid"), _deleted),
            in_json(f"{MESSAGE}.mid"),
            content_hash,
        ),
        type=(dotted(in_json("object"), _field),),
        occurred_at=(
            in_json(f"{VALUE}.messages.0.timestamp"),
            in_json(f"{VALUE}.statuses.0.timestamp"),
            in_json("entry.0.messaging.0.timestamp"),
            in_json("entry.0.time"),
        ),
    ),
    greet=subscribes(as_text),
    batch=_split,
    # The time of sending, not of the change.
    volatile=("entry.time",),
    accepted_status=200,
    facts=Facts(
        title="Meta (Facebook, Instagram, WhatsApp)",
        scheme="HMAC-SHA256 over the body, hex after `sha256=`",
        event_id="a message's `id` or `mid`, with its status where it is one; else the body's hash",
        handshake="GET with `hub.mode`, `hub.verify_token` and `hub.challenge`, which is sent back",
        retries="less and less often, for 36 hours; WhatsApp for up to 7 days",
        key_from='the app\'s secret and a verify token that you choose: `{"secret":"…",'
        '"verify_token":"…"}`',
    ),
)
