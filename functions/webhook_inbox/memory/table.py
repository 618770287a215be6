"""The ledger's table in memory."""

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from webhook_inbox.conditions import Condition
from webhook_inbox.errors import ConditionFailed, Unavailable
from webhook_inbox.limits import ITEM_BYTES, PK_BYTES, SK_BYTES, item_size, text_size
from webhook_inbox.memory.faults import Call, Faults, no_faults
from webhook_inbox.memory.indexes import INDEXES, Index, View
from webhook_inbox.ports import Change, Item, Key, Page

# How many of so many unseen writes, the latest ones, an eventually consistent read misses.
Lag = Callable[[int], int]

_SCALARS: Final = frozenset({str, int, bool, bytes})

Partitions = dict[str, dict[str, Item]]
Snapshot = tuple[
    Partitions,
    Partitions,
    dict[str, dict[str, dict[Key, Item]]],
    tuple[tuple[Key, Item | None], ...],
]


class MemoryTable:
    """DynamoDB as the port `Table` uses it.

    Stored rows are never changed in place, so old and new versions share what they have in
    common, and a read copies containers only.

    Args:
        indexes: the table's indexes; the ledger's own unless given.
        faults: which calls fail, and when.
        lag: asked at every eventually consistent read; nothing lags unless given.
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
            _check_key(key, "GetItem")
            found = self._partitions(consistent=consistent).get(key.pk, {}).get(key.sk)
            return None if found is None else _copied(found)

    def get_many(self, keys: Sequence[Key]) -> list[Item]:
        """See the port."""
        found: list[Item] = []
        unique = list(dict.fromkeys(keys))
        for start in range(0, len(unique), 100):
            with self._call("BatchGetItem"):
                partitions = self._partitions(consistent=False)
                rows = (partitions.get(pk, {}).get(sk) for pk, sk in unique[start : start + 100])
                found += (_copied(row) for row in rows if row is not None)
        return found

    def put(self, item: Item, *, when: Condition | None = None) -> None:
        """See the port."""
        with self._call("PutItem"):
            key = Key(item["pk"], item["sk"])
            self._check_row(key, item, "PutItem")
            _check_condition(when, self._row(key))
            self._store(key, _copied(item))

    def update(self, key: Key, change: Change, *, when: Condition | None = None) -> Item:
        """See the port."""
        with self._call("UpdateItem"):
            _check_change(change)
            old = self._row(key)
            _check_condition(when, old)
            new = _changed(key, old, change)
            self._check_row(key, new, "UpdateItem")
            self._store(key, new)
            return _copied(new)

    def delete(self, key: Key) -> None:
        """See the port."""
        with self._call("DeleteItem"):
            _check_key(key, "DeleteItem")
            self._store(key, None)

    def query(self, pk: str, *, sk_prefix: str = "", consistent: bool = True) -> Iterator[Item]:
        """See the port."""
        with self._call("Query"):
            rows = self._partitions(consistent=consistent).get(pk, {})
            found = [_copied(rows[sk]) for sk in sorted(rows) if sk.startswith(sk_prefix)]
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
            self._partitions(consistent=False)
            view = self._views[index]
            rows = view.between(value, low, high, newest_first=newest_first, start=start)
            chosen = rows[:limit]
            # As AWS does: a page that is full names a next one, even if that will be empty.
            full = limit is not None and len(chosen) == limit
            last = view.index.position(chosen[-1]) if full else None
            return Page([view.index.project(row) for row in chosen], last)

    def __iter__(self) -> Iterator[Item]:
        """Yields every row as it is, for assertions: no call, no fault, no lag."""
        for rows in list(self._rows.values()):
            yield from (_copied(row) for row in list(rows.values()))

    def snapshot(self) -> Snapshot:
        """Returns all there is to know of the table, for `restore`; rows are shared, not copied."""
        views = {name: view.snapshot() for name, view in self._views.items()}
        return _shallow(self._rows), _shallow(self._replica), views, tuple(self._unseen)

    def restore(self, snapshot: Snapshot) -> None:
        """Makes the table what it was."""
        rows, replica, views, unseen = snapshot
        self._rows, self._replica = _shallow(rows), _shallow(replica)
        for name, view in self._views.items():
            view.restore(views[name])
        self._unseen = deque(unseen)

    def _call(self, operation: str) -> Call:
        return Call(self.faults, "dynamodb", operation)

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
        _check_key(key, operation)
        if item_size(row) > ITEM_BYTES:
            raise _invalid(operation, "Item size has exceeded the maximum allowed size")
        for index in self._indexes:
            if not index.fits(row):
                raise _invalid(operation, f"a key of index {index.name} has the wrong type")


def _write(partitions: Partitions, key: Key, row: Item | None) -> None:
    if row is not None:
        partitions.setdefault(key.pk, {})[key.sk] = row
    elif key.pk in partitions:
        partitions[key.pk].pop(key.sk, None)


def _shallow(partitions: Partitions) -> Partitions:
    return {pk: rows.copy() for pk, rows in partitions.items()}


def _changed(key: Key, old: Item | None, change: Change) -> Item:
    before: Item = {"pk": key.pk, "sk": key.sk} if old is None else old
    new = {name: value for name, value in before.items() if name not in change.remove}
    new.update((k, _copy(v)) for k, v in change.default.items() if k not in before)
    new.update((k, _copy(v)) for k, v in change.set.items())
    for name, amount in change.add.items():
        start = before.get(name, 0)
        if type(start) is not int:
            raise _invalid("UpdateItem", f"ADD to {name}, which is no number")
        new[name] = start + amount
    return new


def _check_condition(when: Condition | None, old: Item | None) -> None:
    if when is not None and not when.holds(old if old is not None else {}):
        raise ConditionFailed(None if old is None else _copied(old))


def _check_change(change: Change) -> None:
    names = [*change.set, *change.default, *change.add, *change.remove]
    if len(set(names)) != len(names):
        raise _invalid("UpdateItem", "Two document paths overlap with each other")
    if "pk" in names or "sk" in names:
        raise _invalid("UpdateItem", "Cannot update attribute: part of the key")


def _check_key(key: Key, operation: str) -> None:
    if not (0 < text_size(key.pk) <= PK_BYTES and 0 < text_size(key.sk) <= SK_BYTES):
        raise _invalid(operation, "a key is empty or too long")


def _invalid(operation: str, text: str) -> Unavailable:
    return Unavailable("dynamodb", operation, f"ValidationException: {text}")


def _copied(row: Item) -> Item:
    return {k: v if type(v) in _SCALARS else _copy(v) for k, v in row.items()}


def _copy(value: Any) -> Any:
    if isinstance(value, dict):
        return _copied(value)
    return [_copy(entry) for entry in value] if isinstance(value, list) else value
