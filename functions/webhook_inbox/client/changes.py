"""Follows the runs whose status changes: those of the events shown, and those of the due index.

A change of status moves a run's entry in the due index, or removes it; a poll reads the rows of the
entries that moved since the last one. A first attempt has no entry, so the runs of the events that
arrived are read until they end. Changes between two polls are seen as one.
"""

from collections import OrderedDict
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from typing import Final

from webhook_inbox.domain.model import SETTLED, Overview, Run
from webhook_inbox.domain.ports import Key, Table
from webhook_inbox.ledger.queries import Ledger
from webhook_inbox.ledger.schema import DEAD_FROM, key_of_run, run_from, run_key

WORKERS: Final = 8
# The runs of events that arrived and have not ended; the newest are read.
WATCHED: Final = 500
# The states that are remembered, so that none is shown twice.
KNOWN: Final = 20_000

# The properties of a run that are shown; another value is a change.
_State = tuple[str, int, int, str]


class Changes:
    """Yields the runs whose status changed since a time; its memory and its reads are bounded.

    A poll reads a page of each partition of the due index: the 100 runs that are due first.
    """

    def __init__(self, table: Table, *, since: datetime) -> None:
        self._table = table
        self._ledger = Ledger(table=table)
        self._since = since
        self._watched: OrderedDict[Key, None] = OrderedDict()
        self._listed: dict[Key, int] = {}
        self._known: OrderedDict[Key, _State] = OrderedDict()

    def watch(self, overview: Overview) -> None:
        """Follows the runs of an event that is shown as it is now."""
        states = {run.handler: run for run in overview.runs}
        event = overview.event
        for name in dict.fromkeys((*event.runs, *states)):
            run = states.get(name)
            if run is not None:
                self._remember(run)
            if run is None or run.status not in SETTLED:
                self._watched[run_key(event.source, event.event_id, name)] = None
        while len(self._watched) > WATCHED:
            self._watched.popitem(last=False)

    def poll(self) -> Iterator[Run]:
        """Yields each run that changed since the last poll, in the order of the changes.

        Raises:
            Unavailable: the ledger failed.
        """
        listed = self._due()
        moved = {key for key, _ in self._listed.items() ^ listed.items()}
        rows = self._table.get_many([*{*moved, *self._watched}])
        self._listed = listed
        runs = [run_from(row) for row in rows]
        for run in sorted(runs, key=lambda run: run.last_at or self._since):
            if run.status in SETTLED:
                self._watched.pop(key_of_run(run), None)
            late = run.last_at is not None and run.last_at >= self._since
            if late and self._known.get(key_of_run(run)) != _state(run):
                self._remember(run)
                yield run

    def _due(self) -> dict[Key, int]:
        """Returns the open runs that are due first, with their times."""
        with ThreadPoolExecutor(WORKERS) as pool:
            pages = pool.map(
                lambda bucket: self._ledger.due_page(bucket, high=DEAD_FROM - 1),
                self._ledger.due_buckets(),
            )
            return {
                Key(item["pk"], item["sk"]): item["due_at"] for page in pages for item in page.items
            }

    def _remember(self, run: Run) -> None:
        key = key_of_run(run)
        self._known[key] = _state(run)
        self._known.move_to_end(key)
        while len(self._known) > KNOWN:
            self._known.popitem(last=False)


def _state(run: Run) -> _State:
    return str(run.status), run.generation, run.attempt_count, run.waits_for
