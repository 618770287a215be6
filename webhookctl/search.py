"""Finds events by their time, or by runs that need attention."""

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime, timedelta
from heapq import merge
from itertools import groupby, islice
from typing import Any, Final

from webhook_inbox.domain.manifest import matches
from webhook_inbox.domain.model import EventStatus, Overview, Run, StoredEvent
from webhook_inbox.domain.ports import Table
from webhook_inbox.domain.timestamps import from_ms, to_ms
from webhook_inbox.ledger.queries import Ledger, Received
from webhook_inbox.ledger.schema import BY_RECEIVED, RUN_LIFE, identify, received_buckets

# The default window of a search by time.
WINDOW: Final = timedelta(hours=24)
WORKERS: Final = 8
PAGE: Final = 100

# By source and event id.
InDueIndex = dict[tuple[str, str], tuple[Received, list[Run]]]

# An event of such a status has a run that the `by_due` index lists.
ATTENDED: Final = frozenset(
    {
        EventStatus.DEAD_LETTER,
        EventStatus.HELD,
        EventStatus.FAILED,
        EventStatus.DEFERRED,
        EventStatus.PENDING,
    }
)


@dataclass(frozen=True, slots=True)
class Wanted:
    """The filters of a search; None matches all.

    `status` filters by the handler's run where `handler` is given, otherwise by the event.
    """

    source: str | None = None
    type: str | None = None
    status: EventStatus | None = None
    handler: str | None = None
    since: datetime | None = None

    def names(self, found: Received) -> bool:
        """Returns whether an event may match, according to its index entry."""
        return (
            self.source in {None, found.source}
            and (self.type is None or matches((self.type,), found.type))
            and (self.since is None or found.received_at >= self.since)
        )

    def fits(self, overview: Overview) -> bool:
        """Returns whether an event matches."""
        if self.handler is None:
            return self.status in {None, overview.status}
        statuses: Mapping[str, str] = {run.handler: run.status for run in overview.runs}
        known = self.handler in {*overview.event.runs, *statuses}
        status = statuses.get(self.handler, EventStatus.ACCEPTED)
        return known and (self.status is None or status == str(self.status))


def find(table: Table, wanted: Wanted, *, now: datetime) -> Iterator[Overview]:
    """Yields the matching events, newest first, without their bodies.

    A run outlives its event by a week; an expired event is shown as far as its run's row tells.
    """
    ledger = Ledger(table=table)
    looked_up = wanted.status in {*ATTENDED, EventStatus.PROCESSING}
    in_due_index = _in_due_index(ledger) if looked_up else {}
    candidates = _once(filter(wanted.names, _candidates(table, in_due_index, wanted, now)))
    return filter(wanted.fits, _read(ledger, candidates, in_due_index, now))


def _candidates(
    table: Table, in_due_index: InDueIndex, wanted: Wanted, now: datetime
) -> Iterator[Received]:
    newest_first = iter(sorted((event for event, _ in in_due_index.values()), key=_newest))
    if wanted.status in ATTENDED:
        return newest_first
    received = _received(table, wanted.since or now - WINDOW, now)
    if wanted.status is not EventStatus.PROCESSING:
        return received
    # The due index lists later attempts of any age, but no first attempts.
    return merge(received, newest_first, key=_newest)


def _once(found: Iterator[Received]) -> Iterator[Received]:
    seen: set[tuple[str, str]] = set()
    for event in found:
        if (event.source, event.event_id) not in seen:
            seen.add((event.source, event.event_id))
            yield event


def _in_due_index(ledger: Ledger) -> InDueIndex:
    """Returns the events with runs in the due index, and those runs."""
    found: InDueIndex = {}
    for run in ledger.due_runs():
        if run.expires_at is not None:
            received_at = run.expires_at - RUN_LIFE
            event = Received(run.source, run.event_id, run.type, received_at)
            found.setdefault((run.source, run.event_id), (event, []))[1].append(run)
    return found


def _remains(known: Received, runs: Sequence[Run]) -> Overview:
    """Returns an expired event, reconstructed from its runs."""
    event = StoredEvent(
        source=known.source,
        event_id=known.event_id,
        type=known.type,
        received_at=known.received_at,
        body=b"",
        fingerprint="",
        headers={},
        runs=tuple(run.handler for run in runs),
    )
    return Overview(event, tuple(runs))


def _received(table: Table, low: datetime, high: datetime) -> Iterator[Received]:
    """Yields the events received in [low, high], newest first.

    Reads page by page, since an hour may have a million events.
    """
    for _, buckets in groupby(received_buckets(low, high), key=lambda b: b.partition("#")[0]):
        shards = [_shard(table, bucket, low, high) for bucket in buckets]
        yield from merge(*shards, key=_newest)


def _shard(table: Table, bucket: str, low: datetime, high: datetime) -> Iterator[Received]:
    start: Mapping[str, Any] | None = None
    while True:
        page = table.query_index(
            BY_RECEIVED,
            bucket,
            low=to_ms(low),
            high=to_ms(high),
            newest_first=True,
            limit=PAGE,
            start=start,
        )
        for item in page.items:
            source, event_id = identify(item["pk"])
            yield Received(source, event_id, item["type"], from_ms(item["received_at"]))
        start = page.next
        if start is None:
            return


def _newest(found: Received) -> float:
    return -found.received_at.timestamp()


def _read(
    ledger: Ledger, found: Iterator[Received], in_due_index: InDueIndex, now: datetime
) -> Iterator[Overview]:
    """Reads the events in batches, in order."""

    def one(event: Received) -> Overview | None:
        overview = ledger.overview(event.source, event.event_id, now=now)
        remains = in_due_index.get((event.source, event.event_id))
        return _remains(*remains) if overview is None and remains else overview

    with ThreadPoolExecutor(WORKERS) as pool:
        while batch := list(islice(found, WORKERS)):
            yield from (overview for overview in pool.map(one, batch) if overview is not None)
