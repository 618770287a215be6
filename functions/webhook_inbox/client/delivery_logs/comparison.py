"""Finds the events of a provider's log that the ledger lacks."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import islice
from typing import Final, Protocol

from webhook_inbox.domain.ports import Table
from webhook_inbox.ledger.schema import dedupe_key, event_key, live

# Entries per batch.
CHUNK: Final = 500


@dataclass(frozen=True, slots=True)
class Logged:
    """An event that the provider sent, or tried to send.

    Attributes:
        event_id: as ingest derives it.
        type: as ingest derives it.
        at: the time of the last delivery attempt, or of the event where the log lacks that.
        answered: the HTTP status of the last attempt; None where the log lacks it.
        handle: the provider's identifier for a redelivery request.
    """

    event_id: str
    type: str
    at: datetime
    answered: int | None
    handle: str


class DeliveryLog(Protocol):
    """A provider's log of the deliveries to one URL."""

    @property
    def memory(self) -> timedelta:
        """The period that it covers."""

    @property
    def pause(self) -> float:
        """The seconds between two redelivery requests that the provider asks for."""

    def entries(self, low: datetime, high: datetime) -> Iterator[Logged]:
        """Yields the events sent in [low, high], newest first; raises ApiUnusable or ApiRefused."""

    def resend(self, entry: Logged) -> None:
        """Requests a redelivery, newly signed; raises ApiUnusable or ApiRefused."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """The result of a comparison.

    Attributes:
        looked_at: the number of events in the log.
        unwanted: the number of events whose types the source does not store.
        missing: the other events that the ledger lacks, oldest first.
    """

    looked_at: int
    unwanted: int
    missing: tuple[Logged, ...]


def compare(
    entries: Iterable[Logged],
    table: Table,
    *,
    source: str,
    wants: Callable[[str], bool],
    now: datetime,
) -> Comparison:
    """Compares a log with the ledger, without writes.

    `wants` says whether the source stores a type. Expired events count as missing.
    """
    looked_at = unwanted = 0
    absent: list[Logged] = []
    remaining = iter(entries)
    while chunk := list(islice(remaining, CHUNK)):
        wanted = [entry for entry in chunk if wants(entry.type)]
        looked_at += len(chunk)
        unwanted += len(chunk) - len(wanted)
        absent += _absent(table, source, wanted, now)
    missing = sorted(absent, key=lambda entry: (entry.at, entry.event_id))
    return Comparison(looked_at, unwanted, tuple(missing))


def _absent(table: Table, source: str, entries: list[Logged], now: datetime) -> list[Logged]:
    keys = {entry.event_id: event_key(source, dedupe_key(entry.event_id)) for entry in entries}
    found = {item["pk"] for item in table.get_many(list(keys.values())) if live(item, now)}
    suspects = [entry for entry in entries if keys[entry.event_id].pk not in found]
    # `get_many` reads eventually consistent; an event stored a moment ago is not missing.
    return [entry for entry in suspects if live(table.get(keys[entry.event_id]), now) is None]
