"""Secondary indexes of the table in memory."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from webhook_inbox.domain.ports import Item, Key
from webhook_inbox.ledger.schema import BY_DUE, BY_RECEIVED


@dataclass(frozen=True, slots=True)
class Index:
    """One index: its key attributes, and the other projected attributes."""

    name: str
    partition: str
    sort: str
    projected: tuple[str, ...] = ()

    def holds(self, row: Item) -> bool:
        """Returns whether the row is in the index, which is sparse."""
        return self.partition in row and self.sort in row

    def fits(self, row: Item) -> bool:
        """Returns whether the row may be written: its index keys have the right type."""
        partition, sort = row.get(self.partition, "?"), row.get(self.sort, 0)
        return isinstance(partition, str) and partition != "" and type(sort) is int

    def covers(self, row: Mapping[str, Any], value: str, low: int, high: int) -> bool:
        """Returns whether a query of a partition's range may start after this row."""
        return bool(row[self.partition] == value and low <= row[self.sort] <= high)

    def position(self, row: Item) -> Item:
        """Returns a row's LastEvaluatedKey."""
        return {name: row[name] for name in ("pk", "sk", self.partition, self.sort)}

    def project(self, row: Item) -> Item:
        """Returns the projected attributes of a row."""
        return self.position(row) | {name: row[name] for name in self.projected if name in row}


INDEXES: Final = (
    Index(
        BY_RECEIVED,
        "received_bucket",
        "received_at",
        ("source", "type", "runs", "held", "tenant", "erased_at"),
    ),
    Index(BY_DUE, "due_bucket", "due_at"),
)


class View:
    """The rows of one index, by partition."""

    def __init__(self, index: Index) -> None:
        self.index = index
        self._partitions: dict[str, dict[Key, Item]] = {}

    def replace(self, key: Key, old: Item | None, new: Item | None) -> None:
        """Replicates one write of the table."""
        if old is not None and self.index.holds(old):
            del self._partitions[old[self.index.partition]][key]
        if new is not None and self.index.holds(new):
            self._partitions.setdefault(new[self.index.partition], {})[key] = new

    def holds_any(self, value: str) -> bool:
        """Returns whether a partition has rows."""
        return bool(self._partitions.get(value))

    def snapshot(self) -> dict[str, dict[Key, Item]]:
        """Returns its rows by partition, for `restore`."""
        return {value: rows.copy() for value, rows in self._partitions.items() if rows}

    def restore(self, snapshot: dict[str, dict[Key, Item]]) -> None:
        """Restores a state."""
        self._partitions = {value: rows.copy() for value, rows in snapshot.items()}

    def between(
        self,
        value: str,
        low: int,
        high: int,
        *,
        newest_first: bool,
        start: Mapping[str, Any] | None,
    ) -> list[Item]:
        """Returns a partition's rows with sort keys in [low, high], in order, after `start`."""
        sort = self.index.sort
        rows = [row for row in self._partitions.get(value, {}).values() if low <= row[sort] <= high]
        rows.sort(key=self._place, reverse=newest_first)
        if start is None:
            return rows
        after = self._place(start)
        if newest_first:
            return [row for row in rows if self._place(row) < after]
        return [row for row in rows if self._place(row) > after]

    def _place(self, row: Mapping[str, Any]) -> tuple[int, str, str]:
        return row[self.index.sort], row["pk"], row["sk"]
