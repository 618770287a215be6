"""Keeps deliveries that failed verification, so that nothing a provider sent is lost.

What is kept was never verified: the number per source and minute is bounded, so that a flood
fills neither the table nor the bill.
"""

from datetime import timedelta
from hashlib import sha256
from typing import Final
from urllib.parse import urlencode

from webhook_inbox import bodies
from webhook_inbox.conditions import Absent, Less, either
from webhook_inbox.errors import ConditionFailed, Reason, Unavailable
from webhook_inbox.events import GENERAL_HEADERS
from webhook_inbox.instants import to_ms, to_seconds
from webhook_inbox.model import Delivery
from webhook_inbox.ports import Blobs, Change, Item, Key, Table
from webhook_inbox.recipe import Recipe
from webhook_inbox.schemes.urls import fields

LIFE: Final = timedelta(days=7)
PER_MINUTE: Final = 60
# A bearer token is the secret itself, should it be right: it is not kept (G10).
HIDDEN: Final = "hidden"


def partition(source: str) -> str:
    """Returns the partition of a source's rejected deliveries."""
    return f"rejected#{source}"


class RejectedBox:
    """Where rejected deliveries are kept; it remembers which minutes are full."""

    def __init__(self, table: Table, blobs: Blobs) -> None:
        self._table = table
        self._blobs = blobs
        self._full: dict[str, str] = {}

    def keep(self, delivery: Delivery, reason: Reason, recipe: Recipe) -> bool:
        """Stores a delivery without making it an event; False when this minute's share is used up.

        Of its headers only those are kept that its scheme and its naming need.

        Raises:
            Unavailable: storage failed and the delivery could have been a true one, of which
                there is no other copy: the provider has to send it again.
        """
        try:
            return self._keep(delivery, reason, recipe)
        except Unavailable:
            if reason is Reason.NO_SECRET:
                raise
            return False

    def _keep(self, delivery: Delivery, reason: Reason, recipe: Recipe) -> bool:
        expires_at = to_seconds(delivery.received_at + LIFE)
        if not self._within_bound(delivery, expires_at):
            return False
        packed = bodies.pack(delivery.body, source=delivery.source, prefix=bodies.REJECTED_PREFIX)
        if packed.blob_key:
            self._blobs.put(packed.blob_key, packed.blob)
        row = {**_row(delivery, reason, recipe), "expires_at": expires_at, **packed.attributes}
        self._table.put(row)
        return True

    def _within_bound(self, delivery: Delivery, expires_at: int) -> bool:
        minute = f"{delivery.received_at:%Y-%m-%dT%H:%M}"
        if self._full.get(delivery.source) == minute:
            # Known without a call: a flood costs none.
            return False
        key = Key(f"rejected-count#{delivery.source}", minute)
        below = either(Absent("kept"), Less("kept", PER_MINUTE))
        change = Change(set={"expires_at": expires_at}, add={"kept": 1})
        try:
            self._table.update(key, change, when=below)
        except ConditionFailed:
            self._full[delivery.source] = minute
            return False
        return True


def _row(delivery: Delivery, reason: Reason, recipe: Recipe) -> Item:
    digest = sha256(delivery.body).hexdigest()
    needed = GENERAL_HEADERS | recipe.kept_headers | recipe.signature_headers | {"host"}
    headers = {k: _text(v) for k, v in delivery.headers.items() if k in needed}
    hidden = dict.fromkeys(headers.keys() & recipe.token_headers, HIDDEN)
    return {
        "pk": partition(delivery.source),
        "sk": f"{to_ms(delivery.received_at):013d}#{digest[:16]}",
        "reason": str(reason),
        "method": delivery.method,
        "path": _text(delivery.path),
        "query": _text(_query(delivery, recipe)),
        "headers": headers | hidden,
        "fingerprint": digest,
    }


def _query(delivery: Delivery, recipe: Recipe) -> str:
    pairs = fields(delivery.query)
    if recipe.token_fields.isdisjoint(key for key, _ in pairs):
        return delivery.query
    return urlencode([(k, HIDDEN if k in recipe.token_fields else v) for k, v in pairs])


def _text(value: str) -> str:
    # JSON can spell lone surrogates, and no store takes them.
    return value.encode(errors="replace").decode()
