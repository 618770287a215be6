"""Deliveries that hold many events."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Final

from webhook_inbox.domain.errors import Reason, Rejected
from webhook_inbox.domain.json_path import at, document
from webhook_inbox.domain.model import Delivery
from webhook_inbox.providers.schemes.identity.raw_json import excerpt

# Ten times what any provider of ours sends at once.
LIMIT: Final = 10_000

Parts = Callable[[Delivery], Sequence[Delivery] | None]


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


def split_at(path: str = "", *, inside: str = "", content_type: str = "") -> Parts:
    """Splits a delivery into one for each element of a list.

    The body of each is its element as it stands in the whole: numbers to the last digit, blanks,
    escapes, the order of names. What surrounds the list is in no part; the headers are in all.

    Args:
        path: where the list stands; names of objects, with dots between them.
        inside: where the event stands in an element, likewise.
        content_type: what an element is sent as, where that differs from the whole.
    """

    def split(delivery: Delivery) -> Sequence[Delivery]:
        found = elements(delivery, path)
        headers = delivery.headers
        if content_type:
            headers = {**headers, "content-type": content_type}
        try:
            bodies = list(_bodies(delivery.body, path, inside))
        except RecursionError as error:
            raise Rejected(Reason.MALFORMED, "the batch is nested too deeply") from error
        return [
            replace(delivery, headers=headers, body=body)
            for body, _ in zip(bodies, found, strict=True)
        ]

    return split


def _bodies(body: bytes, path: str, inside: str) -> Iterator[bytes]:
    whole = excerpt(body).at(path)
    for element in whole.elements() if whole else ():
        event = element.at(inside)
        if event is None or not event.is_object:
            raise Rejected(Reason.MALFORMED, "an event of the batch is no object")
        yield event.raw
