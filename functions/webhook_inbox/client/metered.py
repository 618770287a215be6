"""A table that only reads, and estimates the price of its reads."""

from collections.abc import Iterator, Mapping, Sequence
from math import ceil
from threading import Lock
from typing import Any, Final, NoReturn

from webhook_inbox.domain.ports import Item, Key, Page, Table
from webhook_inbox.domain.prices import READ_UNITS

# The bytes of one read unit; an eventually consistent read takes half a unit.
UNIT: Final = 4096


class MeteredTable(Table):
    """Reads another table, from several threads; refuses to write.

    `units` is the estimate of the read units so far.
    """

    def __init__(self, table: Table) -> None:
        self._table = table
        self._lock = Lock()
        self.units = 0.0

    @property
    def dollars(self) -> float:
        """The estimated price of the reads so far."""
        return self.units * READ_UNITS / 1_000_000

    def get(self, key: Key, *, consistent: bool = True) -> Item | None:
        """See the port."""
        item = self._table.get(key, consistent=consistent)
        self._count(_size(item or {}), consistent=consistent)
        return item

    def get_many(self, keys: Sequence[Key], *, only: Sequence[str] = ()) -> list[Item]:
        """See the port."""
        items = self._table.get_many(keys, only=only)
        for item in items:
            self._count(_size(item), consistent=False)
        return items

    def query(self, pk: str, *, consistent: bool = True, **options: Any) -> Iterator[Item]:
        """See the port."""
        size = 0
        try:
            # Row by row: a partition may have a million, of which few are needed.
            for item in self._table.query(pk, consistent=consistent, **options):
                size += _size(item)
                yield item
        finally:
            self._count(size, consistent=consistent)

    def query_index(self, index: str, value: str, **options: Any) -> Page:
        """See the port."""
        page = self._table.query_index(index, value, **options)
        self._count(sum(map(_size, page.items)), consistent=False)
        return page

    def put(self, *_: Any, **__: Any) -> NoReturn:
        """Refuses."""
        raise PermissionError("this table only reads")

    update = delete = put

    def _count(self, size: int, *, consistent: bool) -> None:
        units = max(ceil(size / UNIT), 1) * (1.0 if consistent else 0.5)
        with self._lock:
            self.units += units


def _size(value: object) -> int:
    match value:
        case bytes():
            return len(value)
        case str():
            return len(value.encode(errors="replace"))
        case Mapping():
            return sum(_size(name) + _size(each) for name, each in value.items())
        case list() | tuple():
            return sum(map(_size, value))
        case _:
            return 8
