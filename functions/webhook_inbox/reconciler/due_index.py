"""Reads the runs of the due index whose time has come, handler by handler.

Handlers take turns, a page of rows each, so that no handler's backlog delays another's runs:

    wake    parked and held runs, oldest first; sent at most as fast as the handler's budget
    watch   runs whose message was not received; not read while the lane's backlog explains that

A budget is the number of runs to send in one pass: 20 per second for a handler, or the rate of
each destination that it calls, shared with the other handlers that call it. A handler whose budget
is used up, or that has no more due runs, is not read any further.
"""

from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import islice
from math import ceil
from typing import Final

from webhook_inbox.domain.errors import Unavailable
from webhook_inbox.domain.manifest import Manifest
from webhook_inbox.domain.ports import Item, Page, Ports
from webhook_inbox.domain.timestamps import MILLISECOND, to_ms
from webhook_inbox.ledger.pauses import RECHECK
from webhook_inbox.ledger.queries import PAGE, Ledger
from webhook_inbox.ledger.schema import WAKE, WATCH, due_buckets
from webhook_inbox.reconciler.overdue import OverdueRuns
from webhook_inbox.reconciler.report import ReconcilerReport

# The seconds between two passes.
PASS: Final = 60
# The runs of one handler that a pass resumes, and those that it sends again: 20 per second. A lane
# is shared, so a handler may not fill it at once.
DRAIN: Final = 20 * PASS


class Budgets:
    """The runs that may still be sent in this pass."""

    def __init__(self, manifest: Manifest, *, drain: int) -> None:
        self._manifest = manifest
        self._drain = drain
        self._left: dict[str, int] = {}
        self._callers = Counter(
            name for spec in manifest.handlers.values() for name in self._rated(spec.name)
        )

    def left(self, handler: str, kind: str) -> int:
        """Returns how many runs of a handler may still be sent."""
        return min(self._left.setdefault(n, most) for n, most in self._all(handler, kind).items())

    def turn(self, handler: str, kind: str) -> int:
        """Returns how many runs a handler may send in one turn: a page, or its share of a rate."""
        shares = [
            ceil(most / max(1, self._callers[name]))
            for name, most in self._all(handler, kind).items()
        ]
        return min(PAGE, self.left(handler, kind), *shares)

    def spend(self, handler: str, kind: str, runs: int) -> None:
        """Takes sent runs from the budgets that they count against."""
        for name in self._all(handler, kind):
            self._left[name] -= runs

    def _all(self, handler: str, kind: str) -> Mapping[str, int]:
        """Returns the budgets of a handler with their sizes."""
        rates = self._rated(handler) if kind == WAKE else {}
        return rates or {f"{kind}#{handler}": self._drain}

    def _rated(self, handler: str) -> dict[str, int]:
        spec = self._manifest.handler(handler)
        called = spec.destinations if spec else ()
        known = [self._manifest.destinations[n] for n in called if n in self._manifest.destinations]
        # A run that is sent faster would only be deferred again.
        return {each.name: max(1, ceil(each.rate * PASS)) for each in known if each.rate}


@dataclass(frozen=True, slots=True)
class Turns:
    """The due runs of one handler and kind, oldest first in each shard; `look` handles them."""

    handler: str
    kind: str
    rows: Iterator[Item]
    look: Callable[[Sequence[Item]], int]


@dataclass(frozen=True, slots=True)
class DueBucket:
    """One partition of the due index, and the first page of its entries."""

    handler: str
    kind: str
    name: str
    first: Page


class DueIndexPass:
    """One pass over the due index; `stop` tells when the time of the pass is over."""

    def __init__(
        self,
        ports: Ports,
        *,
        overdue: OverdueRuns,
        budgets: Budgets,
        report: ReconcilerReport,
        stop: Callable[[], bool],
        now: datetime,
    ) -> None:
        self._ledger = Ledger(table=ports.table)
        self._overdue = overdue
        self._budgets = budgets
        self._report = report
        self._parallel = ports.parallel
        self._stop = stop
        self._now = now

    def run(self, handlers: Iterable[str]) -> None:
        """Handles the due runs of these handlers, then those that wait for a resumption.

        Raises:
            Unavailable: so many calls failed that the rest is left for the next pass.
        """
        names = sorted(handlers)
        # Another handler is first in each pass, in case the time is over before each had a turn.
        first = int(self._now.timestamp()) // PASS % max(1, len(names))
        names = [*names[first:], *names[:first]]
        now = to_ms(self._now)
        due = self._first_pages(names, (WAKE, WATCH), 0, now)
        late = max((now - bucket.first.items[0]["due_at"] for bucket in due), default=0)
        self._report.oldest_due = late * MILLISECOND
        self._take_turns(self._turns(due, self._overdue.look, 0, now))
        # Runs that wait for a resumption are due within RECHECK.
        resumed = [name for name in names if self._overdue.may_resume(name)]
        low, high = now + 1, to_ms(self._now + RECHECK)
        early = self._first_pages(resumed, (WAKE,), low, high)
        self._take_turns(self._turns(early, self._overdue.resume, low, high))

    def _take_turns(self, waiting: Iterable[Turns]) -> None:
        turns = deque(waiting)
        while turns and not self._stop():
            one = turns.popleft()
            size = self._budgets.turn(one.handler, one.kind)
            if size <= 0:
                continue
            taken: list[Item] = []
            self._report.attempt(taken.extend, islice(one.rows, size))
            if taken:
                sent = one.look(taken)
                self._budgets.spend(one.handler, one.kind, sent)
            if len(taken) == size:
                turns.append(one)

    def _turns(
        self, found: Iterable[DueBucket], look: Callable[[Sequence[Item]], int], low: int, high: int
    ) -> Iterator[Turns]:
        by_handler: dict[tuple[str, str], list[DueBucket]] = {}
        for bucket in found:
            by_handler.setdefault((bucket.handler, bucket.kind), []).append(bucket)
        for (handler, kind), buckets in by_handler.items():
            rows = self._rows(handler, kind, buckets, low, high)
            yield Turns(handler, kind, rows, look)

    def _first_pages(
        self, handlers: Iterable[str], kinds: Sequence[str], low: int, high: int
    ) -> list[DueBucket]:
        """Reads the first page of every partition and returns those that have due runs."""

        def read(place: tuple[str, str, str]) -> DueBucket | Unavailable:
            try:
                return DueBucket(*place, self._ledger.due_page(place[2], low=low, high=high))
            except Unavailable as error:
                return error

        places = [
            (handler, kind, bucket)
            for handler in handlers
            for kind in kinds
            for bucket in due_buckets(handler, [kind])
        ]
        found: list[DueBucket] = []
        for answer in self._parallel.map(read, places):
            self._report.attempt(_keep, (found, answer))
        return found

    def _rows(
        self, handler: str, kind: str, buckets: Iterable[DueBucket], low: int, high: int
    ) -> Iterator[Item]:
        """Yields the rows of a handler, a page of each shard in turn."""
        waiting = deque((bucket.name, bucket.first) for bucket in buckets)
        if waiting and kind == WATCH:
            high -= self._overdue.explained(handler) // timedelta(milliseconds=1)
        while waiting:
            bucket, page = waiting.popleft()
            entries = [entry for entry in page.items if entry["due_at"] <= high]
            yield from (row for _, row in self._ledger.rows_of(entries))
            if page.next is not None and page.next["due_at"] <= high:
                following = self._ledger.due_page(bucket, low=low, high=high, start=page.next)
                waiting.append((bucket, following))


def _keep(answer: tuple[list[DueBucket], DueBucket | Unavailable]) -> None:
    found, page = answer
    if isinstance(page, Unavailable):
        raise page
    if page.first.items:
        found.append(page)
