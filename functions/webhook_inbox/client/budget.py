"""A table with a budget: it reads a part of a long index, and says so.

A million runs may wait, or be dead. A script can read all of them; a page of the console must
answer within a second, so its reads end early, and it says that it shows a part.
"""

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import datetime
from functools import cached_property, partial
from itertools import dropwhile, islice
from time import monotonic
from typing import Any, Final, NamedTuple, NoReturn

from webhook_inbox.domain.ports import Item, Key, Page, Table
from webhook_inbox.domain.timestamps import from_ms
from webhook_inbox.ledger.schema import BY_DUE, BY_RECEIVED, received_buckets

# The entries of one partition of the due index; a handler has eight partitions.
ENTRIES: Final = 300
# The rows of one partition of the table, such as the rejected deliveries of a source.
ROWS: Final = 2000
SECONDS: Final = 0.6
# The first entries of each partition of the due index are read even later: on a slow network, or a
# busy machine, a list of runs that wait must not be empty.
LATEST: Final = 5.0
# The empty partitions of `by_received` that are read at the same time.
AHEAD: Final = 8


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
        seconds: the time from now on after which an index yields no further entries; the first ones
            of a partition of the due index are read for LATEST seconds.

    Attributes:
        cuts: the partitions of indexes that were not read to their ends.
        cut: whether any rows were left out.
    """

    def __init__(self, table: Table, *, seconds: float = SECONDS) -> None:
        self._table = table
        self._ends = monotonic() + seconds
        self._latest = monotonic() + max(seconds, LATEST)
        self._read: dict[str, int] = {}
        self._last: dict[str, int] = {}
        self._ahead: dict[str, Future[Page]] = {}
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
        if self._is_over(index, value):
            self.cut = True
            self.cuts.append(Cut(index, value, self._last.get(value)))
            return Page((), None)
        page = self._page(index, value, start, options)
        self._read[value] += len(page.items)
        if page.items and index == BY_DUE:
            self._last[value] = page.items[-1]["due_at"]
        return page

    def _is_over(self, index: str, value: str) -> bool:
        read = self._read[value]
        if index == BY_DUE and not read:
            return monotonic() > self._latest
        return monotonic() > self._ends or (index == BY_DUE and read >= ENTRIES)

    def _page(
        self, index: str, value: str, start: Mapping[str, Any] | None, options: Mapping[str, Any]
    ) -> Page:
        ahead = self._ahead.pop(value, None) if start is None else None
        if ahead is not None:
            page = ahead.result()
        else:
            page = self._table.query_index(index, value, start=start, **options)
        if index == BY_RECEIVED and not page.items:
            self._read_ahead(value, options)
        return page

    def _read_ahead(self, value: str, options: Mapping[str, Any]) -> None:
        """Reads the partitions that follow an empty one at the same time.

        A quiet day has a hundred empty partitions, and each takes 20 to 80 ms over a network.
        """
        for each in islice(_following(value, options), AHEAD):
            if each not in self._read and each not in self._ahead:
                read = partial(self._table.query_index, BY_RECEIVED, each, **options)
                self._ahead[each] = self._pool.submit(read)

    @cached_property
    def _pool(self) -> ThreadPoolExecutor:
        return ThreadPoolExecutor(AHEAD)

    def put(self, *_: Any, **__: Any) -> NoReturn:
        """Refuses."""
        raise PermissionError("this table only reads")

    update = delete = put


def _following(value: str, options: Mapping[str, Any]) -> Iterator[str]:
    """Yields the partitions of `by_received` behind this one, in the order of the search."""
    begun = datetime.fromisoformat(f"{value.partition('#')[0]}:00+00:00")
    low, high = from_ms(options["low"]), from_ms(options["high"])
    newest_first = options.get("newest_first", False)
    low, high = (low, max(begun, low)) if newest_first else (min(begun, high), high)
    buckets = received_buckets(low, high, newest_first=newest_first)
    return islice(dropwhile(lambda each: each != value, buckets), 1, None)
