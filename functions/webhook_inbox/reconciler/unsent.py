"""Adopts runs without a row (never sent), and lists runs whose first worker was lost."""

from collections.abc import Iterable, Sequence
from datetime import datetime

from webhook_inbox.domain.conditions import Absent, every
from webhook_inbox.domain.errors import ConditionFailed
from webhook_inbox.domain.manifest import SPLIT, Manifest
from webhook_inbox.domain.model import Run, Status, StoredEvent, is_batch
from webhook_inbox.domain.ports import Change, Item, Table
from webhook_inbox.domain.timestamps import to_ms
from webhook_inbox.ledger.deadlines import overdue_at
from webhook_inbox.ledger.due_handlers import DueHandlers
from webhook_inbox.ledger.lease import CLOCK_SKEW
from webhook_inbox.ledger.queries import Ledger, Received
from webhook_inbox.ledger.schema import (
    RUN_LIFE,
    due_entry,
    key_of_run,
    run_from,
    run_identity,
    run_key,
    transition,
)
from webhook_inbox.ledger.settle import as_seen
from webhook_inbox.queue.lanes import Backlogs, Lanes
from webhook_inbox.queue.message import RunMessage
from webhook_inbox.reconciler.report import Action, ReconcilerReport


class UnsentRuns:
    """Checks the runs of events, a page at a time."""

    def __init__(
        self,
        *,
        manifest: Manifest,
        ledger: Ledger,
        table: Table,
        lanes: Lanes,
        backlogs: Backlogs,
        report: ReconcilerReport,
        now: datetime,
    ) -> None:
        self._manifest = manifest
        self._ledger = ledger
        self._table = table
        self._lanes = lanes
        self._listed = DueHandlers(table)
        self._backlogs = backlogs
        self._report = report
        self._now = now

    def look(self, page: Sequence[Received], *, thorough: bool) -> None:
        """Adopts the runs of these events that have no row, and lists the abandoned ones.

        The manifest gives the expected rows, read a hundred in a call; an event is read whole
        only if one is missing. `thorough` reads every event, and so also finds runs whose handler
        has left the manifest.

        Raises:
            Unavailable: the ledger or the queue failed.
        """
        rows = self._expected_rows(page)
        for row in rows:
            self._report.attempt(lambda row: self._watch(run_from(row)), row)
        begun = {(row["pk"], row["sk"]) for row in rows}
        for event in page:
            expected = {
                tuple(run_key(event.source, event.event_id, name)) for name in self._handlers(event)
            }
            if thorough or not expected <= begun:
                self._report.attempt(self._look_at_event, event)

    def _expected_rows(self, page: Iterable[Received]) -> list[Item]:
        keys = [
            run_key(event.source, event.event_id, name)
            for event in page
            for name in self._handlers(event)
        ]
        return self._table.get_many(keys)

    def _handlers(self, event: Received) -> list[str]:
        if is_batch(event.event_id, event.type):
            return [SPLIT]
        return [spec.name for spec in self._manifest.runs_for(event.source, event.type)]

    def _look_at_event(self, received: Received) -> None:
        found = self._ledger.overview(received.source, received.event_id, now=self._now)
        if found is None:
            return
        begun = {run.handler for run in found.runs}
        for run in found.runs:
            self._watch(run)
        for name in found.event.runs:
            if name not in begun:
                self._adopt(found.event, name)

    def _adopt(self, event: StoredEvent, handler: str) -> None:
        key = run_key(event.source, event.event_id, handler)
        ordering_key = event.ordering_keys.get(handler, "")
        change = Change(
            set={
                **run_identity(event, handler, expires_at=event.received_at + RUN_LIFE),
                **due_entry(key, overdue_at(self._now)),
                "status": str(Status.PENDING),
                "last_at": to_ms(self._now),
            },
            default={"first_at": to_ms(self._now)},
        )
        lane = self._manifest.lane_of(handler)
        self._listed.ensure(handler, until=event.received_at + RUN_LIFE)
        send = not self._backlogs.is_large(lane)
        try:
            transition(self._table, key, change, when=Absent("pk"))
        except ConditionFailed:
            self._report.add(Action.MOVED_ON)
            return
        # Behind a large backlog the message is likely queued, and a second one for each run would
        # double it. The run is in the due index now: if no message arrives, it becomes overdue.
        if send:
            reference = RunMessage(event.source, event.event_id, handler, ordering_key=ordering_key)
            self._lanes.send([(lane, reference)])
        self._report.add(Action.ADOPTED)

    def _watch(self, run: Run) -> None:
        # A first attempt is not in the due index. If its worker crashed and its message is lost,
        # no other pass would find it.
        abandoned = (
            run.status is Status.PROCESSING
            and not run.in_due_index
            and run.claimed_until is not None
            and run.claimed_until < self._now - CLOCK_SKEW
        )
        if not abandoned:
            return
        key = key_of_run(run)
        change = Change(set=due_entry(key, overdue_at(run.claimed_until or self._now)))
        try:
            self._table.update(key, change, when=every(as_seen(run), Absent("due_bucket")))
        except ConditionFailed:
            self._report.add(Action.MOVED_ON)
            return
        self._report.add(Action.WATCHED)
