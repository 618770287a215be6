"""Reads the ledger: one event, the events of a period, the runs of the due index."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from heapq import merge
from itertools import chain, groupby, islice
from operator import attrgetter, itemgetter
from typing import Any, Final

from webhook_inbox.domain.model import Overview, Run, Status
from webhook_inbox.domain.ports import Blobs, Item, Key, Page, Table
from webhook_inbox.domain.timestamps import from_ms, to_ms
from webhook_inbox.domain.trace import Trace
from webhook_inbox.ledger import due_handlers, payloads
from webhook_inbox.ledger.audit import read_entry
from webhook_inbox.ledger.schema import (
    ACTION_PREFIX,
    BY_DUE,
    BY_RECEIVED,
    DEAD_FROM,
    DUE_KINDS,
    EFFECT_PREFIX,
    RUN_PREFIX,
    WAIT_PREFIX,
    WATCH,
    due_buckets,
    event_from,
    event_key,
    event_pk,
    identify,
    live,
    received_buckets,
    run_from,
)

PAGE: Final = 100
FOR_EVER: Final = (1 << 53) - 1


@dataclass(frozen=True, slots=True)
class Received:
    """An event as the `by_received` index names it."""

    source: str
    event_id: str
    type: str
    received_at: datetime
    tenant: str = ""

    @property
    def place(self) -> tuple[datetime, str, str]:
        """Its place in the order of a search."""
        return self.received_at, self.source, self.event_id


@dataclass(frozen=True, slots=True, order=True)
class DueEntry:
    """An entry of the `by_due` index; entries are ordered by time, then by key."""

    due_at: int
    pk: str
    sk: str

    @property
    def key(self) -> Key:
        """The key of the run's row."""
        return Key(self.pk, self.sk)

    @property
    def source(self) -> str:
        """The run's source."""
        return identify(self.pk)[0]

    @property
    def handler(self) -> str:
        """The run's handler."""
        return self.sk.removeprefix(RUN_PREFIX)


# Selects entries before their rows are read.
Selects = Callable[[DueEntry], bool]


def _received(item: Item) -> Received:
    received_at = from_ms(item["received_at"])
    return Received(*identify(item["pk"]), item["type"], received_at, item.get("tenant", ""))


def index_pages(
    table: Table,
    index: str,
    bucket: str,
    *,
    low: int,
    high: int,
    limit: int = PAGE,
    newest_first: bool = False,
) -> Iterator[Page]:
    """Yields the pages of one partition of an index; see `Table.query_index`."""
    start: Mapping[str, Any] | None = None
    while True:
        page = table.query_index(
            index, bucket, low=low, high=high, newest_first=newest_first, limit=limit, start=start
        )
        yield page
        start = page.next
        if start is None:
            return


def _items(pages: Iterable[Page]) -> Iterator[Item]:
    return chain.from_iterable(page.items for page in pages)


def _all(_: DueEntry) -> bool:
    return True


class Ledger:
    """Reads rows as records. Without `blobs` it reads no bodies."""

    def __init__(self, *, table: Table, blobs: Blobs | None = None) -> None:
        self._table = table
        self._blobs = blobs

    def overview(
        self, source: str, event_id: str, *, now: datetime, with_body: bool = False
    ) -> Overview | None:
        """Returns an event with its runs, effects and actions, read consistently; None if unknown.

        Its body is empty unless it is asked for.
        """
        rows = list(self._table.query(event_pk(source, event_id)))
        event_row = next((live(row, now) for row in rows if row["sk"] == "event"), None)
        if event_row is None:
            return None
        body = payloads.unpack(event_row, self._blobs) if with_body and self._blobs else b""
        return Overview(
            event=event_from(event_row, body),
            runs=tuple(run_from(row) for row in rows if row["sk"].startswith(RUN_PREFIX)),
            effects=tuple(self._whole(row) for row in rows if row["sk"].startswith(EFFECT_PREFIX)),
            waits=tuple(row for row in rows if row["sk"].startswith(WAIT_PREFIX)),
            actions=tuple(read_entry(row) for row in rows if row["sk"].startswith(ACTION_PREFIX)),
        )

    def _whole(self, effect: Item) -> Item:
        """Returns an effect with the shared row of its business key merged in."""
        if "shared" not in effect:
            return effect
        return {**(self._table.get(Key(effect["shared"], "effect")) or {}), **effect}

    def event_row(self, source: str, event_id: str, *, now: datetime) -> Item | None:
        """Returns an event's row, eventually consistent; None if it is unknown or has expired."""
        return live(self._table.get(event_key(source, event_id), consistent=False), now)

    def traces(self, events: Iterable[tuple[str, str]]) -> dict[tuple[str, str], Trace]:
        """Returns the traces of the events that exist, by source and id, eventually consistent.

        Raises:
            Unavailable: the table failed.
        """
        keys = [event_key(*event) for event in events]
        named = {
            identify(row["pk"]): row["headers"]
            for row in self._table.get_many(keys, only=("pk", "headers"))
        }
        return {
            (source, event_id): Trace.of(headers, source=source, event_id=event_id)
            for (source, event_id), headers in named.items()
        }

    def body_of(self, event_row: Item) -> bytes:
        """Returns the body of an event's row; the ledger must have `blobs`.

        Raises:
            Permanent: the body is gone, or was changed.
            Unavailable: S3 failed.
        """
        if self._blobs is None:
            raise ValueError("a ledger without blobs reads no bodies")
        return payloads.unpack(event_row, self._blobs)

    def received(
        self, low: datetime, high: datetime, *, newest_first: bool = False
    ) -> Iterator[Received]:
        """Yields the events received in [low, high] in their order.

        Reads page by page, since an hour may have a million events.
        """
        buckets = received_buckets(low, high, newest_first=newest_first)
        for _, hour in groupby(buckets, key=lambda bucket: bucket.partition("#")[0]):
            shards = [self._shard(each, low, high, newest_first=newest_first) for each in hour]
            yield from merge(*shards, key=attrgetter("place"), reverse=newest_first)

    def _shard(
        self, bucket: str, low: datetime, high: datetime, *, newest_first: bool
    ) -> Iterator[Received]:
        """Yields the events of one partition of the `by_received` index in order."""
        pages = index_pages(
            self._table,
            BY_RECEIVED,
            bucket,
            low=to_ms(low),
            high=to_ms(high),
            newest_first=newest_first,
        )
        # The index orders events of one millisecond as it likes; a position needs one order.
        for _, items in groupby(_items(pages), key=itemgetter("received_at")):
            yield from sorted(map(_received, items), key=attrgetter("place"), reverse=newest_first)

    def due_page(
        self,
        bucket: str,
        *,
        low: int = 0,
        high: int = FOR_EVER,
        start: Mapping[str, Any] | None = None,
    ) -> Page:
        """Returns one page of the entries of a partition of the due index, earliest first."""
        return self._table.query_index(BY_DUE, bucket, low=low, high=high, limit=PAGE, start=start)

    def rows_of(self, entries: Sequence[Item]) -> list[tuple[Item, Item]]:
        """Returns entries of the due index with their rows, in this order.

        The index may lag: a row may have moved on since, or be gone (then it is left out).
        """
        keys = [Key(entry["pk"], entry["sk"]) for entry in entries]
        rows = {(row["pk"], row["sk"]): row for row in self._table.get_many(keys)}
        return [(e, rows[e["pk"], e["sk"]]) for e in entries if (e["pk"], e["sk"]) in rows]

    def due_buckets(self, kinds: Iterable[str] = DUE_KINDS) -> list[str]:
        """Returns every partition of these kinds that the due index may have, in a stable order.

        Dead runs are in those of the kind `WATCH`.
        """
        kinds = tuple(kinds)
        return [
            bucket
            for handler in due_handlers.registered(self._table)
            for bucket in due_buckets(handler, kinds)
        ]

    def due_runs(
        self, *, selects: Selects = _all, bucket: str | None = None, newest_first: bool = False
    ) -> Iterator[Run]:
        """Yields the open runs of the due index, in no order, page by page; no dead ones.

        With `newest_first`, those of a partition that are due last come first, as held runs are.
        """
        for each in self.due_buckets() if bucket is None else [bucket]:
            entries = self._entries(each, low=0, high=DEAD_FROM - 1, newest_first=newest_first)
            for _, run in self._read(filter(selects, entries)):
                if run is not None and run.status is not Status.DEAD_LETTER:
                    yield run

    def open_runs(
        self, bucket: str, *, after: DueEntry | None = None, selects: Selects = _all
    ) -> Iterator[tuple[DueEntry, Run | None]]:
        """Yields the entries of one bucket behind `after`, in order, each with its run.

        The run is None if it is gone or dead.
        """
        low = 0 if after is None else after.due_at
        entries = self._entries(bucket, low=low, high=DEAD_FROM - 1)
        following = (entry for entry in entries if after is None or entry > after)
        for entry, run in self._read(filter(selects, following)):
            yield entry, None if run is None or run.status is Status.DEAD_LETTER else run

    def dead_runs(
        self,
        *,
        low: int = DEAD_FROM,
        high: int = FOR_EVER,
        after: DueEntry | None = None,
        newest_first: bool = False,
        selects: Selects = _all,
    ) -> Iterator[tuple[DueEntry, Run | None]]:
        """Yields each entry of a dead run with the run, in the order in which events were received.

        The shards are merged page by page, so that the memory does not grow with the index. The
        order is exact to the second. The run is None if it is no longer dead.

        Args:
            low: the least `due_at`.
            high: the greatest `due_at`.
            after: an entry that was yielded; only later ones follow.
            newest_first: the newest event first instead of the oldest.
            selects: the entries whose rows are read.
        """
        if after is not None:
            low = max(low, after.due_at)
        shards = (
            self._entries(bucket, low=low, high=high, newest_first=newest_first)
            for bucket in self.due_buckets([WATCH])
        )
        merged = merge(*shards, reverse=newest_first)
        following = (entry for entry in merged if after is None or entry > after)
        for entry, run in self._read(filter(selects, following)):
            dead = run is not None and run.status is Status.DEAD_LETTER
            yield entry, run if dead else None

    def _entries(
        self, bucket: str, *, low: int, high: int, newest_first: bool = False
    ) -> Iterator[DueEntry]:
        """Yields the entries of one partition in order, page by page."""
        pages = index_pages(
            self._table, BY_DUE, bucket, low=low, high=high, newest_first=newest_first
        )
        # The index orders entries of one millisecond as it likes; a position needs one order.
        for _, equal in groupby(_items(pages), key=itemgetter("due_at")):
            entries = (DueEntry(item["due_at"], item["pk"], item["sk"]) for item in equal)
            yield from sorted(entries, reverse=newest_first)

    def _read(self, entries: Iterator[DueEntry]) -> Iterator[tuple[DueEntry, Run | None]]:
        """Yields each entry with its run, None if the row is gone; reads a page of rows at once."""
        while page := list(islice(entries, PAGE)):
            rows = {
                (row["pk"], row["sk"]): row
                for row in self._table.get_many([entry.key for entry in page])
            }
            for entry in page:
                row = rows.get(entry.key)
                yield entry, None if row is None else run_from(row)
