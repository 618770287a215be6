"""Finds the deliveries that `rejected` keeps. Works in an operator's hands, never in a Lambda."""

import hmac
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from hashlib import sha256
from typing import Final
from urllib.parse import urlencode

from webhook_inbox.domain.conditions import Absent, Less, either
from webhook_inbox.domain.errors import ConditionFailed, Reason, Rejected, Unavailable
from webhook_inbox.domain.json_path import fields
from webhook_inbox.domain.model import Delivery
from webhook_inbox.domain.ports import Blobs, Change, Item, Key, Table
from webhook_inbox.domain.provider import Provider
from webhook_inbox.domain.secrets import TOKEN_KEY, SecretCache
from webhook_inbox.domain.timestamps import from_ms, from_seconds, to_ms, to_seconds
from webhook_inbox.ingest.events import GENERAL_HEADERS
from webhook_inbox.ledger import payloads
from webhook_inbox.ledger.schema import live

LIFE: Final = timedelta(days=7)
PER_MINUTE: Final = 60
DETAIL_LIMIT: Final = 256
HASHED: Final = "hmac-sha256:"
# What is kept of a token where that secret could not be had.
HIDDEN: Final = "hidden"

# (place, token) to what is kept of it.
Blind = Callable[[str, str], str]


def partition(source: str) -> str:
    """Returns the partition of a source's rejected deliveries."""
    return f"rejected#{source}"


def hashed(key: str, *, source: str, place: str, token: str) -> str:
    """Returns what is kept of a token that a header or a query's field of this name held."""
    content = "\0".join((source, place, token)).encode(errors="replace")
    return HASHED + hmac.digest(key.encode(), content, "sha256").hex()


class RejectedStore:
    """Where rejected deliveries are kept; it remembers which minutes are full."""

    def __init__(self, table: Table, blobs: Blobs, secrets: SecretCache) -> None:
        self._table = table
        self._blobs = blobs
        self._secrets = secrets
        self._full: dict[str, str] = {}

    def keep(self, delivery: Delivery, error: Rejected, provider: Provider) -> bool:
        """Stores a delivery without making it an event; False when this minute's share is used up.

        Of its headers only those are kept that its scheme and its naming need.

        Raises:
            Unavailable: storage failed and the delivery could have been a true one, of which
                there is no other copy: the provider has to send it again.
        """
        try:
            return self._keep(delivery, error, provider)
        except Unavailable:
            if error.reason is Reason.NO_SECRET:
                raise
            return False

    def _keep(self, delivery: Delivery, error: Rejected, provider: Provider) -> bool:
        expires_at = to_seconds(delivery.received_at + LIFE)
        if not self._within_bound(delivery, expires_at):
            return False
        packed = payloads.pack(
            delivery.body, source=delivery.source, prefix=payloads.REJECTED_PREFIX
        )
        if packed.blob_key:
            self._blobs.put(packed.blob_key, packed.blob)
        row = _row(delivery, error, provider, self._blinding(delivery.source))
        self._table.put({**row, "expires_at": expires_at, **packed.attributes})
        return True

    def _blinding(self, source: str) -> Blind:
        def blind(place: str, token: str) -> str:
            try:
                # Read when a delivery with a token was refused, and for no other.
                keys = self._secrets.get(TOKEN_KEY)
            except Unavailable:
                return HIDDEN
            return hashed(keys[0], source=source, place=place, token=token) if keys else HIDDEN

        return blind

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


def _row(delivery: Delivery, error: Rejected, provider: Provider, blind: Blind) -> Item:
    digest = sha256(delivery.body).hexdigest()
    needed = GENERAL_HEADERS | provider.kept_headers | provider.signature_headers | {"host"}
    headers = {k: v for k, v in delivery.headers.items() if k in needed}
    tokens = {k: blind(k, headers[k]) for k in headers.keys() & provider.token_headers}
    return {
        "pk": partition(delivery.source),
        "sk": f"{to_ms(delivery.received_at):013d}#{digest[:16]}",
        "reason": str(error.reason),
        "detail": _text(error.detail)[:DETAIL_LIMIT],
        "method": delivery.method,
        "path": _text(delivery.path),
        "query": _text(_query(delivery, provider, blind)),
        "headers": {name: _text(value) for name, value in (headers | tokens).items()},
        "fingerprint": digest,
    }


def _query(delivery: Delivery, provider: Provider, blind: Blind) -> str:
    pairs = fields(delivery.query)
    if provider.token_fields.isdisjoint(key for key, _ in pairs):
        return delivery.query
    return urlencode([(k, blind(k, v) if k in provider.token_fields else v) for k, v in pairs])


def _text(value: str) -> str:
    # JSON can spell lone surrogates, and no store takes them.
    return value.encode(errors="replace").decode()


@dataclass(frozen=True, slots=True)
class RejectedDelivery:
    """A rejected delivery as the ledger keeps it; `row` has its body, or tells where it is."""

    source: str
    row: Item

    @property
    def id(self) -> str:
        """Its name, which is typed by people."""
        return str(self.row["sk"]).replace("#", "-")

    @property
    def received_at(self) -> datetime:
        """When it came."""
        return from_ms(int(self.row["sk"].partition("#")[0]))

    @property
    def expires_at(self) -> datetime:
        """Until when it is kept."""
        return from_seconds(self.row["expires_at"])

    @property
    def reason(self) -> Reason:
        """Why it was rejected."""
        return Reason(self.row["reason"])

    @property
    def released_at(self) -> datetime | None:
        """When it was let in."""
        return from_ms(self.row["released_at"]) if "released_at" in self.row else None

    @property
    def released_event_id(self) -> str:
        """The id of the event that it was let in as; "" where it was not."""
        return str(self.row.get("released_event_id", ""))


@dataclass(frozen=True, slots=True)
class RejectedFilter:
    """Which kept deliveries are looked for; () and None stand for all."""

    ids: tuple[str, ...] = ()
    reasons: tuple[Reason, ...] = ()
    since: datetime | None = None
    until: datetime | None = None

    def fits(self, kept: RejectedDelivery) -> bool:
        """Tells whether a kept delivery is looked for."""
        return (
            (not self.ids or kept.id in self.ids)
            and (not self.reasons or kept.reason in self.reasons)
            and (self.since is None or kept.received_at >= self.since)
            and (self.until is None or kept.received_at < self.until)
        )


def find(
    table: Table, source: str, wanted: RejectedFilter, *, now: datetime
) -> Iterator[RejectedDelivery]:
    """Yields a source's kept deliveries that are looked for, in the order in which they came."""
    rows = (row for row in table.query(partition(source)) if live(row, now) is not None)
    return filter(wanted.fits, (RejectedDelivery(source, row) for row in rows))
