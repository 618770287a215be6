"""Which of the events in a provider's log the ledger does not have."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from webhook_inbox.domain.ports import Table
from webhook_inbox.ledger.schema import dedupe_key, event_key, live
from webhookctl.delivery_logs.log import Logged

# What is read, and kept in memory, at once.
CHUNK: Final = 500


@dataclass(frozen=True, slots=True)
class Comparison:
    """What comparing came to.

    Attributes:
        looked_at: how many events the log has.
        unwanted: how many of them are of types that the source does not store.
        missing: the others that are not in the ledger, oldest first.
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
    """Compares a log with the ledger; changes nothing.

    Args:
        entries: of the log.
        table: the ledger's.
        source: whose events they are.
        wants: tells of a type whether the source stores it.
        now: what has expired by then counts as missing, as everywhere.
    """
    looked_at = 0
    wanted: list[Logged] = []
    for entry in entries:
        looked_at += 1
        if wants(entry.type):
            wanted.append(entry)
    absent = [
        entry
        for start in range(0, len(wanted), CHUNK)
        for entry in _absent(table, source, wanted[start : start + CHUNK], now)
    ]
    missing = sorted(absent, key=lambda entry: (entry.at, entry.event_id))
    return Comparison(looked_at, looked_at - len(wanted), tuple(missing))


def _absent(table: Table, source: str, entries: list[Logged], now: datetime) -> list[Logged]:
    keys = {entry.event_id: event_key(source, dedupe_key(entry.event_id)) for entry in entries}
    found = {item["pk"] for item in table.get_many(list(keys.values())) if live(item, now)}
    suspects = [entry for entry in entries if keys[entry.event_id].pk not in found]
    # Many rows are read eventually consistent; what came a moment ago is not missing.
    return [entry for entry in suspects if live(table.get(keys[entry.event_id]), now) is None]
