"""A table for one page: it reads a part of a long index, and says so.

A million runs may wait, or be dead. A command reads all of them; a page must answer within a
second, so its reads end early, and the page says that it shows a part.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from time import monotonic
from typing import Any, Final, NamedTuple, NoReturn

from webhook_inbox.domain.ports import Item, Key, Page, Table
from webhook_inbox.ledger.schema import BY_DUE

# The entries of one partition of the due index; a handler has eight partitions.
ENTRIES: Final = 300
# The rows of one partition of the table, such as the rejected deliveries of a source.
ROWS: Final = 2000
SECONDS: Final = 0.6
PARTLY: Final = (
    "One page reads a part of so many rows: lists and counts here are of that part. Narrow them"
    " with a filter, or use the command, which reads all."
)


class Cut(NamedTuple):
    """A partition of an index that was not read to its end.

    Attributes:
        name: the index.
        partition: its partition.
        last: the sort key of the last entry that was read; None if none was.
    """

    name: str
    partition: str
    last: int | None


class BoundedTable(Table):
    """Reads another table, from several threads; bounded in rows and in time; refuses to write.

    Args:
        table: the table.
        seconds: the time from now on after which an index yields no further entries.

    Attributes:
        cuts: the partitions of indexes that were not read to their ends.
        cut: whether any rows were left out.
    """

    def __init__(self, table: Table, *, seconds: float = SECONDS) -> None:
        self._table = table
        self._ends = monotonic() + seconds
        self._read: dict[str, int] = {}
        self._last: dict[str, int] = {}
        self.cuts: list[Cut] = []
        self.cut = False

    def get(self, key: Key, *, consistent: bool = True) -> Item | None:
        """See the port."""
        return self._table.get(key, consistent=consistent)

    def get_many(self, keys: Sequence[Key], *, only: Sequence[str] = ()) -> list[Item]:
        """See the port."""
        return self._table.get_many(keys, only=only)

    def query(self, pk: str, **options: Any) -> Iterator[Item]:
        """See the port; at most ROWS rows."""
        rows = self._table.query(pk, **options)
        yield from islice(rows, ROWS)
        if next(rows, None) is not None:
            self.cut = True

    def query_index(
        self, index: str, value: str, *, start: Mapping[str, Any] | None = None, **options: Any
    ) -> Page:
        """See the port; an empty last page behind the bounds."""
        if start is None:
            self._read[value] = 0
            self._last.pop(value, None)
        if monotonic() > self._ends or (index == BY_DUE and self._read[value] >= ENTRIES):
            self.cut = True
            self.cuts.append(Cut(index, value, self._last.get(value)))
            return Page((), None)
        page = self._table.query_index(index, value, start=start, **options)
        self._read[value] += len(page.items)
        if page.items and index == BY_DUE:
            self._last[value] = page.items[-1]["due_at"]
        return page

    def put(self, *_: Any, **__: Any) -> NoReturn:
        """Refuses."""
        raise PermissionError("this table only reads")

    update = delete = put
