"""The ledger's table in memory."""

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final

from webhook_inbox.adapters.memory.faults import Faults, FaultyCall, no_faults
from webhook_inbox.adapters.memory.table_indexes import INDEXES, Index, View
from webhook_inbox.adapters.memory.table_rules import (
    changed,
    check_change,
    check_key,
    check_query,
    copied,
    invalid,
)
from webhook_inbox.domain.conditions import Condition
from webhook_inbox.domain.errors import ConditionFailed
from webhook_inbox.domain.ports import Change, Item, Key, Page
from webhook_inbox.domain.quotas import GET_BATCH, ITEM_BYTES, PAGE_BYTES, item_size
from webhook_inbox.domain.timestamps import to_seconds

# How many of so many unseen writes, the latest ones, an eventually consistent read misses.
Lag = Callable[[int], int]

# DynamoDB does not delete rows that expired longer ago than this.
_TTL_REACH: Final = timedelta(days=5 * 365)

Partitions = dict[str, dict[str, Item]]
Snapshot = tuple[
    Partitions,
    Partitions,
    dict[str, dict[str, dict[Key, Item]]],
    tuple[tuple[Key, Item | None], ...],
]


class MemoryTable:
    """DynamoDB as the port `Table` uses it.

    Stored rows are never changed in place, so a read copies containers only. `lag` is called at
    every eventually consistent read.
    """

    def __init__(
        self,
        *,
        indexes: Sequence[Index] = INDEXES,
        faults: Faults = no_faults,
        lag: Lag | None = None,
    ) -> None:
        self.faults = faults
        self.lag = lag
        self._indexes = indexes
        self._rows: Partitions = {}
        self._replica: Partitions = {}
        self._views = {index.name: View(index) for index in indexes}
        self._unseen: deque[tuple[Key, Item | None]] = deque()

    def get(self, key: Key, *, consistent: bool = True) -> Item | None:
        """See the port."""
        with self._call("GetItem"):
            check_key(key, "GetItem")
            found = self._partitions(consistent=consistent).get(key.pk, {}).get(key.sk)
            return None if found is None else copied(found)

    def get_many(self, keys: Sequence[Key], *, only: Sequence[str] = ()) -> list[Item]:
        """See the port."""
        found: list[Item] = []
        unique = list(dict.fromkeys(keys))
        for start in range(0, len(unique), GET_BATCH):
            with self._call("BatchGetItem"):
                batch = unique[start : start + GET_BATCH]
                for key in batch:
                    check_key(key, "BatchGetItem")
                partitions = self._partitions(consistent=False)
                rows = (partitions.get(pk, {}).get(sk) for pk, sk in batch)
                found += (
                    copied({name: row[name] for name in only or row if name in row})
                    for row in rows
                    if row is not None
                )
        return found

    def put(self, item: Item, *, when: Condition | None = None) -> None:
        """See the port."""
        with self._call("PutItem"):
            key = Key(item["pk"], item["sk"])
            self._check_row(key, item, "PutItem")
            _check_condition(when, self._row(key))
            self._store(key, copied(item))

    def update(self, key: Key, change: Change, *, when: Condition | None = None) -> Item:
        """See the port."""
        with self._call("UpdateItem"):
            check_change(change)
            old = self._row(key)
            _check_condition(when, old)
            new = changed(key, old, change)
            self._check_row(key, new, "UpdateItem")
            self._store(key, new)
            return copied(new)

    def delete(self, key: Key) -> None:
        """See the port."""
        with self._call("DeleteItem"):
            check_key(key, "DeleteItem")
            self._store(key, None)

    def query(
        self,
        pk: str,
        *,
        sk_prefix: str = "",
        consistent: bool = True,
        newest_first: bool = False,
        limit: int | None = None,
    ) -> Iterator[Item]:
        """See the port."""
        with self._call("Query"):
            check_query(pk)
            rows = self._partitions(consistent=consistent).get(pk, {})
            ordered = sorted(rows, reverse=newest_first)
            names = [sk for sk in ordered if sk.startswith(sk_prefix)][:limit]
            found = [copied(rows[sk]) for sk in names]
        yield from found

    def query_index(
        self,
        index: str,
        value: str,
        *,
        low: int,
        high: int,
        newest_first: bool = False,
        limit: int | None = None,
        start: Mapping[str, Any] | None = None,
    ) -> Page:
        """See the port."""
        with self._call("Query"):
            view = self._views[index]
            check_query(value, low, high, limit)
            if start is not None and not view.index.covers(start, value, low, high):
                raise invalid("Query", "The provided starting key is outside query boundaries")
            self._partitions(consistent=False)
            rows = view.between(value, low, high, newest_first=newest_first, start=start)
            found = [view.index.project(row) for row in rows[:limit]]
            page = _one_page(found)
            # As on AWS, a full page has a next one, even if that is empty.
            full = len(page) == limit or len(page) < len(found)
            return Page(page, view.index.position(page[-1]) if full else None)

    def __iter__(self) -> Iterator[Item]:
        """Yields every row, for assertions: no call, no fault, no lag."""
        for rows in list(self._rows.values()):
            yield from (copied(row) for row in list(rows.values()))

    def expired(self, now: datetime) -> list[Key]:
        """Returns the rows that TTL may delete: expired, and no longer than five years ago."""
        end, begin = to_seconds(now), to_seconds(now - _TTL_REACH)
        return [
            Key(pk, sk)
            for pk, rows in self._rows.items()
            for sk, row in rows.items()
            if type(at := row.get("expires_at")) is int and begin < at < end
        ]

    def delete_expired(self, now: datetime, *, only: Callable[[Key], bool] | None = None) -> int:
        """Deletes expired rows as TTL does: no call, no fault; indexes lag as usual."""
        keys = [key for key in self.expired(now) if only is None or only(key)]
        for key in keys:
            self._store(key, None)
        return len(keys)

    def snapshot(self) -> Snapshot:
        """Returns the state of the table, for `restore`; rows are shared, not copied."""
        views = {name: view.snapshot() for name, view in self._views.items()}
        return _shallow(self._rows), _shallow(self._replica), views, tuple(self._unseen)

    def restore(self, snapshot: Snapshot) -> None:
        """Restores a state."""
        rows, replica, views, unseen = snapshot
        self._rows, self._replica = _shallow(rows), _shallow(replica)
        for name, view in self._views.items():
            view.restore(views[name])
        self._unseen = deque(unseen)

    def _call(self, operation: str) -> FaultyCall:
        return FaultyCall(self.faults, "dynamodb", operation)

    def _row(self, key: Key) -> Item | None:
        return self._rows.get(key.pk, {}).get(key.sk)

    def _partitions(self, *, consistent: bool) -> Partitions:
        if consistent:
            return self._rows
        misses = self.lag(len(self._unseen)) if self.lag and self._unseen else 0
        while len(self._unseen) > misses:
            self._replicate(*self._unseen.popleft())
        return self._replica

    def _store(self, key: Key, row: Item | None) -> None:
        _write(self._rows, key, row)
        if self.lag:
            self._unseen.append((key, row))
        else:
            self._replicate(key, row)

    def _replicate(self, key: Key, row: Item | None) -> None:
        old = self._replica.get(key.pk, {}).get(key.sk)
        _write(self._replica, key, row)
        for view in self._views.values():
            view.replace(key, old, row)

    def _check_row(self, key: Key, row: Item, operation: str) -> None:
        check_key(key, operation)
        if item_size(row) > ITEM_BYTES:
            raise invalid(operation, "Item size has exceeded the maximum allowed size")
        for index in self._indexes:
            if not index.fits(row):
                raise invalid(operation, f"a key of index {index.name} has the wrong type")


def _write(partitions: Partitions, key: Key, row: Item | None) -> None:
    if row is not None:
        partitions.setdefault(key.pk, {})[key.sk] = row
    elif key.pk in partitions:
        partitions[key.pk].pop(key.sk, None)


def _shallow(partitions: Partitions) -> Partitions:
    return {pk: rows.copy() for pk, rows in partitions.items()}


def _check_condition(when: Condition | None, old: Item | None) -> None:
    if when is not None and not when.holds(old if old is not None else {}):
        raise ConditionFailed(None if old is None else copied(old))


def _one_page(entries: list[Item]) -> list[Item]:
    """Returns the entries of a page of at most 1 MB."""
    size = 0
    # Two rows are always smaller.
    for number, entry in enumerate(entries if len(entries) * ITEM_BYTES > PAGE_BYTES else ()):
        size += item_size(entry)
        if size > PAGE_BYTES:
            return entries[:number]
    return entries
