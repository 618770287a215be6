"""Deliveries that hold many events."""

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final

from webhook_inbox.errors import Reason, Rejected
from webhook_inbox.model import Delivery
from webhook_inbox.schemes.documents import at, document

# Ten times what any provider of ours sends at once.
LIMIT: Final = 10_000

Splitter = Callable[[Delivery], Sequence[Delivery] | None]


def elements(delivery: Delivery, path: str = "") -> list[object]:
    """Returns the elements of the list at a path of the body's JSON, the body itself at "".

    Raises:
        Rejected: there is none, it is empty, or it is too long (malformed).
    """
    whole = document(delivery)
    found = at(whole, path) if path else whole
    if not isinstance(found, list) or not found:
        raise Rejected(Reason.MALFORMED, f"no list of events at {path or 'the top'} of the body")
    if len(found) > LIMIT:
        raise Rejected(Reason.MALFORMED, f"more than {LIMIT} events in one delivery")
    return found


def split_at(path: str = "", *, inside: str = "", content_type: str = "") -> Splitter:
    """Splits a delivery into one for each element of a list; its JSON becomes the body.

    Args:
        path: where the list stands.
        inside: where the event stands in an element.
        content_type: what an element is sent as, where that differs from the whole.
    """

    def split(delivery: Delivery) -> Sequence[Delivery]:
        headers = delivery.headers
        if content_type:
            headers = {**headers, "content-type": content_type}
        return [
            replace(delivery, headers=headers, body=_written(at(item, inside) if inside else item))
            for item in elements(delivery, path)
        ]

    return split


def _written(item: object) -> bytes:
    if not isinstance(item, dict):
        raise Rejected(Reason.MALFORMED, "an event of the batch is no object")
    return json.dumps(item, separators=(",", ":")).encode()
