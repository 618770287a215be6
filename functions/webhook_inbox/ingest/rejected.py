"""Finds the deliveries that `rejected` keeps. Works in an operator's hands, never in a Lambda."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from webhook_inbox.domain.errors import Reason
from webhook_inbox.domain.ports import Item, Table
from webhook_inbox.domain.timestamps__instants import from_ms, from_seconds
from webhook_inbox.ingest.rejected__rejected import partition
from webhook_inbox.ledger.schema import live


@dataclass(frozen=True, slots=True)
class Kept:
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
class Wanted:
    """Which kept deliveries are looked for; () and None stand for all."""

    ids: tuple[str, ...] = ()
    reasons: tuple[Reason, ...] = ()
    since: datetime | None = None
    until: datetime | None = None

    def fits(self, kept: Kept) -> bool:
        """Tells whether a kept delivery is looked for."""
        return (
            (not self.ids or kept.id in self.ids)
            and (not self.reasons or kept.reason in self.reasons)
            and (self.since is None or kept.received_at >= self.since)
            and (self.until is None or kept.received_at < self.until)
        )


def find(table: Table, source: str, wanted: Wanted, *, now: datetime) -> Iterator[Kept]:
    """Yields a source's kept deliveries that are looked for, in the order in which they came."""
    rows = (row for row in table.query(partition(source)) if live(row, now) is not None)
    return filter(wanted.fits, (Kept(source, row) for row in rows))
