"""Stores rejected deliveries for 7 days, and finds them for an operator."""

import hmac
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Final
from urllib.parse import urlencode

from webhook_inbox.domain.bounded_json import is_bounded
from webhook_inbox.domain.conditions import Absent, Less, either
from webhook_inbox.domain.digest import digest_of
from webhook_inbox.domain.errors import ConditionFailed, Reason, Rejected, Unavailable
from webhook_inbox.domain.json_path import fields
from webhook_inbox.domain.model import Delivery
from webhook_inbox.domain.ports import Change, Item, Key, Ports, Table
from webhook_inbox.domain.provider import Provider
from webhook_inbox.domain.secrets import TOKEN_KEY
from webhook_inbox.domain.timestamps import from_ms, from_seconds, to_ms, to_seconds
from webhook_inbox.ingest.events import GENERAL_HEADERS, OMITTED, substituted
from webhook_inbox.ingest.verification import NAME_LENGTH, unread
from webhook_inbox.ledger import payloads
from webhook_inbox.ledger.schema import live

LIFE: Final = timedelta(days=7)
# Per share.
PER_MINUTE: Final = 60
# The reasons for which no correction of a secret makes a delivery valid.
JUNK: Final = frozenset({Reason.MISSING_SIGNATURE, Reason.MALFORMED, Reason.STALE, Reason.FUTURE})
DETAIL_LIMIT: Final = 256
HASHED: Final = "hmac-sha256:"
# Stored in place of a token's hash where the secret for the hash could not be read.
HIDDEN: Final = "hidden"
# The body is parsed, and then searched for tokens, which takes as long.
TOKEN_WEIGHT: Final = 2
# The place of a token in the body.
BODY: Final = "body"
# The number of names that are stored of a delivery's headers, and the size of the values of those
# that its scheme does not read.
NAMES: Final = 64
UNREAD_LIMIT: Final = 8 * 1024
# The name, and the value, of a header that may authenticate its sender by itself.
CREDENTIAL: Final = re.compile(
    r"token|secret|passw|credential|cookie|authori[sz]|api-?key|session|jwt|bearer"
    r"|(?:^|[-_])(?:key|auth)(?:[-_]|$)"
)
CREDENTIAL_VALUE: Final = re.compile(r"(?:bearer|basic|token|apikey)\s|eyj", re.IGNORECASE)
# The name of a query's field that is shown to an operator.
NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,19}", re.ASCII)

# (place, token) to the text that is stored for the token.
Blind = Callable[[str, str], str]


def partition(source: str) -> str:
    """Returns the partition of a source's rejected deliveries."""
    return f"rejected#{source}"


def _counters(source: str) -> str:
    return f"rejected-count#{source}"


def hashed(key: str, *, source: str, place: str, token: str) -> str:
    """Returns the hash that is stored for a token in a header or a query's field."""
    content = "\0".join((source, place, token)).encode(errors="replace")
    return HASHED + hmac.digest(key.encode(), content, "sha256").hex()


class Share(StrEnum):
    """A source's budget of rejected deliveries per minute; the counter's attribute."""

    WELL_FORMED = "well_formed"  # may be genuine: refused, say, because of a wrong secret
    OTHER = "other"


class RejectedStore:
    """Stores rejected deliveries, per source and minute 60 that may be genuine, and 60 others.

    Anyone can send junk, and a flood of it must not hide the provider's deliveries from an
    operator who set a wrong secret.
    """

    def __init__(self, ports: Ports) -> None:
        self._table = ports.table
        self._blobs = ports.blobs
        self._secrets = ports.secrets
        self._full: dict[tuple[str, Share], str] = {}

    def store(
        self,
        delivery: Delivery,
        error: Rejected,
        provider: Provider,
        *,
        well_formed: Callable[[], bool],
    ) -> bool:
        """Stores a delivery without making it an event; False when the minute's share is used up.

        Stores the headers that its scheme and its naming need, the names of all, and the values of
        the others up to 8 KB: inbox.toml may have the wrong name of a header. A value that may be a
        credential is stored as a keyed hash if the source has tokens, otherwise not at all.

        Args:
            delivery: the delivery.
            error: why it was rejected.
            provider: its provider.
            well_formed: returns whether it may be genuine; called only while a share is left.

        Raises:
            Unavailable: storage failed, and the source has no secret yet: the delivery may be
                genuine, so the provider has to send it again.
        """
        try:
            return self._within_share(delivery, error, well_formed) and self._store(
                delivery, error, provider
            )
        except Unavailable:
            if error.reason is Reason.NO_SECRET:
                raise
            return False

    def _store(self, delivery: Delivery, error: Rejected, provider: Provider) -> bool:
        blind = self._blinding(delivery.source)
        delivery, body_token = _bare(delivery, provider, blind)
        # Computed once: hashing 6 MB takes 4 ms, and anyone can send 6 MB.
        digest = digest_of(delivery.body)
        prefix = f"{payloads.REJECTED_PREFIX}{delivery.source}/"
        body = payloads.pack(delivery.body, prefix=prefix).store(self._blobs)
        row = _row(delivery, digest, error, provider, blind, self._secrets.redact)
        more = {**body_token, "expires_at": _expiry(delivery), **body}
        self._table.put({**row, **more})
        return True

    def _blinding(self, source: str) -> Blind:
        def blind(place: str, token: str) -> str:
            try:
                # Read only for a rejected delivery that has a token.
                keys = self._secrets.get(TOKEN_KEY)
            except Unavailable:
                return HIDDEN
            return hashed(keys[0], source=source, place=place, token=token) if keys else HIDDEN

        return blind

    def _within_share(
        self, delivery: Delivery, error: Rejected, well_formed: Callable[[], bool]
    ) -> bool:
        minute = f"{delivery.received_at:%Y-%m-%dT%H:%M}"
        full = {s for s in Share if self._full.get((delivery.source, s)) == minute}
        if full == set(Share):
            return False
        may_be_genuine = error.reason not in JUNK and well_formed()
        share = Share.WELL_FORMED if may_be_genuine else Share.OTHER
        if share in full:
            # No AWS call: a flood of forged deliveries costs none.
            return False
        key = Key(_counters(delivery.source), minute)
        below = either(Absent(share.value), Less(share.value, PER_MINUTE))
        change = Change(set={"expires_at": _expiry(delivery)}, add={share.value: 1})
        try:
            self._table.update(key, change, when=below)
        except ConditionFailed:
            self._full[delivery.source, share] = minute
            return False
        return True


def _expiry(delivery: Delivery) -> int:
    return to_seconds(delivery.received_at + LIFE)


def _bare(delivery: Delivery, provider: Provider, blind: Blind) -> tuple[Delivery, Item]:
    """Returns the delivery without the tokens in its body, and how the last of them is stored.

    Without a body, if no secret can verify it: to search it for tokens may cost seconds of CPU.
    """
    if not provider.token_members:
        return delivery, {}
    stored: Item = {}

    def blinded(token: str) -> str:
        stored["body_token"] = blind(BODY, token)
        return str(stored["body_token"])

    if not is_bounded(delivery.body, weight=TOKEN_WEIGHT):
        return replace(delivery, body=b""), {}
    body = substituted(delivery.body, provider.token_members, blinded)
    return replace(delivery, body=body), stored


def _row(
    delivery: Delivery,
    digest: str,
    error: Rejected,
    provider: Provider,
    blind: Blind,
    redact: Callable[[str], str],
) -> Item:
    needed = GENERAL_HEADERS | provider.kept_headers | provider.signature_headers | {"host"}
    headers = {k: v for k, v in delivery.headers.items() if k in needed}
    tokens = {k: blind(k, headers[k]) for k in headers.keys() & provider.token_headers}
    others = _unread(delivery, provider)
    hashed_others = {k: blind(k, v) for k, v in others.items()} if provider.bears_tokens else {}
    return {
        "pk": partition(delivery.source),
        "sk": f"{to_ms(delivery.received_at):013d}#{digest[:16]}",
        "reason": str(error.reason),
        "detail": _text(redact(error.detail))[:DETAIL_LIMIT],
        "method": delivery.method,
        "path": _text(redact(delivery.path)),
        "query": _text(redact(_query(delivery, provider, blind))),
        "headers": _texts(headers | tokens, redact),
        "header_names": [_text(redact(k[:NAME_LENGTH])) for k in sorted(delivery.headers)[:NAMES]],
        "unread_headers": {} if provider.bears_tokens else _texts(others, redact),
        "unread_tokens": {k: v for k, v in hashed_others.items() if v != HIDDEN},
        "fingerprint": digest,
    }


def _unread(delivery: Delivery, provider: Provider) -> dict[str, str]:
    """Returns the headers that a corrected name may select; the shortest, up to a total size."""
    found: dict[str, str] = {}
    left = UNREAD_LIMIT
    for name in sorted(unread(provider, delivery.headers), key=lambda k: len(delivery.headers[k])):
        value = delivery.headers[name]
        credential = CREDENTIAL.search(name) or CREDENTIAL_VALUE.match(value)
        # A cookie belongs to a browser's user.
        if (credential and not provider.bears_tokens) or "cookie" in name:
            continue
        left -= len(name) + len(value.encode(errors="replace"))
        if left < 0:
            break
        found[name] = value
    return found


def _texts(headers: Mapping[str, str], redact: Callable[[str], str]) -> dict[str, str]:
    return {name: _text(redact(value)) for name, value in headers.items()}


def _query(delivery: Delivery, provider: Provider, blind: Blind) -> str:
    """Returns the query, of which only its tokens matter if its provider sends any.

    The token may be under a misspelled name, or be one.
    """
    if not provider.token_fields or not delivery.query:
        return delivery.query
    stored: dict[str, str] = {}
    for name, value in fields(delivery.query):
        known = name in provider.token_fields
        place = name if known or (value and NAME.fullmatch(name)) else OMITTED
        stored.setdefault(place, blind(name, value) if known else OMITTED)
    # There are too many fields to be read.
    return urlencode(stored) if stored else OMITTED


def _text(value: str) -> str:
    # JSON can hold lone surrogates, which DynamoDB rejects.
    return value.encode(errors="replace").decode()


@dataclass(frozen=True, slots=True)
class RejectedDelivery:
    """A rejected delivery as it is stored; `row` has its body, or the key of its blob."""

    source: str
    row: Item

    @property
    def id(self) -> str:
        """Its id in the CLI."""
        return str(self.row["sk"]).replace("#", "-")

    @property
    def received_at(self) -> datetime:
        """When it was received."""
        return from_ms(int(self.row["sk"].partition("#")[0]))

    @property
    def expires_at(self) -> datetime:
        """When it expires."""
        return from_seconds(self.row["expires_at"])

    @property
    def reason(self) -> Reason:
        """Why it was rejected."""
        return Reason(self.row["reason"])

    @property
    def released_at(self) -> datetime | None:
        """When it was released; None if it was not."""
        return from_ms(self.row["released_at"]) if "released_at" in self.row else None

    @property
    def released_event_id(self) -> str:
        """The id of the event that it was released as; "" if it was not."""
        return str(self.row.get("released_event_id", ""))


@dataclass(frozen=True, slots=True)
class RejectedFilter:
    """Selects rejected deliveries; () and None select all."""

    ids: tuple[str, ...] = ()
    reasons: tuple[Reason, ...] = ()
    since: datetime | None = None
    until: datetime | None = None

    def fits(self, rejected: RejectedDelivery) -> bool:
        """Returns whether the filter selects a delivery."""
        return (
            (not self.ids or rejected.id in self.ids)
            and (not self.reasons or rejected.reason in self.reasons)
            and (self.since is None or rejected.received_at >= self.since)
            and (self.until is None or rejected.received_at < self.until)
        )


def full_minutes(table: Table, source: str, *, now: datetime) -> Iterator[datetime]:
    """Yields the minutes of the last 7 days in which a share was used up, newest first.

    Further deliveries of that share in such a minute were refused and not stored.
    """
    for row in table.query(_counters(source), newest_first=True):
        used_up = any(row.get(share.value, 0) >= PER_MINUTE for share in Share)
        if used_up and live(row, now) is not None:
            yield datetime.fromisoformat(row["sk"]).replace(tzinfo=UTC)


def find(
    table: Table, source: str, wanted: RejectedFilter, *, now: datetime, newest_first: bool = False
) -> Iterator[RejectedDelivery]:
    """Yields a source's rejected deliveries that the filter selects, in order, page by page."""
    stored = _rows(table, source, wanted, newest_first=newest_first)
    rows = (row for row in stored if live(row, now) is not None)
    for found in (RejectedDelivery(source, row) for row in rows):
        if newest_first and wanted.since is not None and found.received_at < wanted.since:
            return
        if wanted.fits(found):
            yield found


def _rows(
    table: Table, source: str, wanted: RejectedFilter, *, newest_first: bool
) -> Iterator[Item]:
    if not wanted.ids:
        yield from table.query(partition(source), newest_first=newest_first)
    for each in sorted(wanted.ids):
        row = table.get(Key(partition(source), each.replace("-", "#", 1)))
        if row is not None:
            yield row
