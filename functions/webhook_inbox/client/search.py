"""Finds events by their time, or by runs that need attention."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from heapq import merge, nlargest
from itertools import groupby
from typing import Final, TypeVar

from webhook_inbox.domain.manifest import matches
from webhook_inbox.domain.model import EventStatus, Overview, Run, StoredEvent
from webhook_inbox.domain.ports import Table
from webhook_inbox.domain.timestamps import to_seconds
from webhook_inbox.ledger.queries import FOR_EVER, DueEntry, Ledger, Received
from webhook_inbox.ledger.schema import (
    DEAD_FROM,
    RUN_LIFE,
    RUN_PREFIX,
    dead_due_at,
    event_pk,
    live,
    run_from,
)

A = TypeVar("A")
B = TypeVar("B")

# The default window of a search by time.
WINDOW: Final = timedelta(hours=24)
WORKERS: Final = 8
# The events that one pass over the open runs of the due index keeps in memory.
KEPT: Final = 5000
# A run's row has the time of its event rounded up to a second.
ROUNDED: Final = timedelta(seconds=1)

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
class EventQuery:
    """The filters of a search; None matches all.

    `status` filters by the handler's run where `handler` is given, otherwise by the event.
    """

    source: str | None = None
    type: str | None = None
    status: EventStatus | None = None
    handler: str | None = None
    since: datetime | None = None
    until: datetime | None = None
    tenant: str | None = None

    def selects(self, entry: DueEntry) -> bool:
        """Returns whether a run may match, according to its entry in the due index."""
        return self.source in {None, entry.source} and self.handler in {None, entry.handler}

    def names(self, found: Received) -> bool:
        """Returns whether an event may match, according to its index entry.

        The due index has the time rounded up to a second; `fits` compares it exactly.
        """
        return (
            self.source in {None, found.source}
            and self.tenant in {None, found.tenant}
            and (self.type is None or matches((self.type,), found.type))
            and (self.since is None or found.received_at >= self.since)
            and (self.until is None or found.received_at < self.until + ROUNDED)
        )

    def runs(self, run: Run) -> bool:
        """Returns whether a run matches; its row has its event's time rounded up to a second."""
        named = self.source in {None, run.source} and self.handler in {None, run.handler}
        named = named and self.tenant in {None, run.tenant}
        if not named or (self.type is not None and not matches((self.type,), run.type)):
            return False
        if self.status is not None and str(self.status) != str(run.status):
            return False
        if run.expires_at is None:
            return self.since is None and self.until is None
        received_at = run.expires_at - RUN_LIFE
        early = self.since is not None and received_at < self.since
        return not early and (self.until is None or received_at < self.until + ROUNDED)

    def fits(self, overview: Overview) -> bool:
        """Returns whether an event matches."""
        received_at = overview.event.received_at
        if self.since is not None and received_at < self.since:
            return False
        if self.until is not None and received_at >= self.until:
            return False
        if self.handler is None:
            return self.status in {None, overview.status}
        statuses: Mapping[str, str] = {run.handler: run.status for run in overview.runs}
        known = self.handler in {*overview.event.runs, *statuses}
        status = statuses.get(self.handler, EventStatus.ACCEPTED)
        return known and (self.status is None or status == str(self.status))


def read_ahead(read: Callable[[A], B], items: Iterable[A], *, at_once: int) -> Iterator[B]:
    """Yields the result of `read` for each item in order; makes so many calls at the same time."""
    with ThreadPoolExecutor(at_once) as pool:
        ahead: deque[Future[B]] = deque()
        for item in items:
            ahead.append(pool.submit(read, item))
            if len(ahead) >= at_once:
                yield ahead.popleft().result()
        while ahead:
            yield ahead.popleft().result()


# Called with each event before it is read.
Passing = Callable[[Received], None]


def find(
    table: Table, query: EventQuery, *, now: datetime, passing: Passing | None = None
) -> Iterator[Overview]:
    """Yields the matching events, newest first, without their bodies.

    `passing` sees how far the search came, and ends it by an error of its own.

    The memory does not grow with the number of events, except for those of one second. A run
    outlives its event by a week; an expired event is shown as far as its runs' rows tell.
    """
    ledger = Ledger(table=table)
    candidates = _once(filter(query.names, _seen(_candidates(ledger, query, now), passing)))
    found = filter(query.fits, _read(ledger, table, candidates, query, now))
    # The due index lists events in the order of their time rounded up to a second.
    for _, second in groupby(found, key=lambda overview: to_seconds(overview.event.received_at)):
        yield from sorted(second, key=lambda overview: _place(overview.event), reverse=True)


def _candidates(ledger: Ledger, query: EventQuery, now: datetime) -> Iterator[Received]:
    if query.status is EventStatus.DEAD_LETTER:
        return _dead(ledger, query)
    if query.status in ATTENDED:
        return _open(ledger, query)
    high = query.until or now
    arrived = ledger.received(query.since or high - WINDOW, high, newest_first=True)
    if query.status is not EventStatus.PROCESSING:
        return arrived
    # The due index lists later attempts of any age, but no first attempts.
    return merge(arrived, _open(ledger, query), key=_newest)


def _seen(found: Iterator[Received], passing: Passing | None) -> Iterator[Received]:
    for event in found:
        if passing is not None:
            passing(event)
        yield event


def _once(found: Iterator[Received]) -> Iterator[Received]:
    """Yields each event once; the entries of an event follow each other within a second."""
    recent: deque[Received] = deque()
    seen: set[tuple[str, str]] = set()
    for event in found:
        while recent and recent[0].received_at - event.received_at > 2 * ROUNDED:
            gone = recent.popleft()
            seen.discard((gone.source, gone.event_id))
        if (event.source, event.event_id) not in seen:
            seen.add((event.source, event.event_id))
            recent.append(event)
            yield event


def _dead(ledger: Ledger, query: EventQuery) -> Iterator[Received]:
    """Yields the events of dead runs, newest first; the index has them in this order."""
    low = DEAD_FROM if query.since is None else dead_due_at(query.since + RUN_LIFE)
    high = FOR_EVER if query.until is None else dead_due_at(query.until + RUN_LIFE + ROUNDED)
    runs = ledger.dead_runs(low=low, high=high, newest_first=True, selects=query.selects)
    for _, run in runs:
        if run is not None:
            yield from _event_of(run)


def _open(ledger: Ledger, query: EventQuery) -> Iterator[Received]:
    """Yields the events of open runs in the status of the query, newest first.

    The index has them in another order. Each pass reads all of it and keeps the newest events
    behind those of the pass before.
    """
    last: Received | None = None
    while True:
        find_newest = partial(_newest_open, ledger, query, last)
        with ThreadPoolExecutor(WORKERS) as pool:
            kept: list[Received] = []
            for found in pool.map(find_newest, ledger.due_buckets()):
                kept = nlargest(KEPT, {*kept, *found}, key=_place)
        yield from kept
        if len(kept) < KEPT:
            return
        last = kept[-1]


def _newest_open(
    ledger: Ledger, query: EventQuery, last: Received | None, bucket: str
) -> list[Received]:
    def found() -> Iterator[Received]:
        # A held run is due when its event expires, behind runs that wait for a time.
        last_due_first = query.status is EventStatus.HELD
        runs = ledger.due_runs(selects=query.selects, bucket=bucket, newest_first=last_due_first)
        for run in runs:
            if run.status == str(query.status):
                yield from _event_of(run)

    behind = (event for event in found() if last is None or _place(event) < _place(last))
    return nlargest(KEPT, filter(query.names, behind), key=_place)


def _event_of(run: Run) -> Iterator[Received]:
    if run.expires_at is not None:
        received_at = run.expires_at - RUN_LIFE
        yield Received(run.source, run.event_id, run.type, received_at, run.tenant)


def _remains(table: Table, known: Received, now: datetime) -> Overview | None:
    """Returns an expired event, reconstructed from its runs; None if those have expired too."""
    rows = table.query(event_pk(known.source, known.event_id), sk_prefix=RUN_PREFIX)
    runs = tuple(run_from(row) for row in rows if live(row, now))
    if not runs:
        return None
    event = StoredEvent(
        source=known.source,
        event_id=known.event_id,
        type=known.type,
        received_at=known.received_at,
        tenant=known.tenant,
        body=b"",
        fingerprint="",
        headers={},
        runs=tuple(run.handler for run in runs),
    )
    return Overview(event, runs)


def _newest(found: Received) -> float:
    return -found.received_at.timestamp()


def _place(found: Received | StoredEvent) -> tuple[datetime, str, str]:
    return found.received_at, found.source, found.event_id


def _read(
    ledger: Ledger, table: Table, found: Iterator[Received], query: EventQuery, now: datetime
) -> Iterator[Overview]:
    """Returns the events that exist, in order."""
    by_run = query.status in {*ATTENDED, EventStatus.PROCESSING}

    def one(event: Received) -> Overview | None:
        overview = ledger.overview(event.source, event.event_id, now=now)
        return _remains(table, event, now) if overview is None and by_run else overview

    read = read_ahead(one, found, at_once=WORKERS)
    return (overview for overview in read if overview is not None)
