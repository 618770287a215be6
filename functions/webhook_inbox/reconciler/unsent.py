"""Adopts runs without a row (never sent), and lists runs whose first worker was lost."""

from collections.abc import Collection, Sequence
from datetime import datetime, timedelta

from webhook_inbox.domain.conditions import Absent, every
from webhook_inbox.domain.errors import ConditionFailed
from webhook_inbox.domain.manifest import SPLIT, Manifest
from webhook_inbox.domain.model import Status
from webhook_inbox.domain.ports import Change, Item, Key, Ports
from webhook_inbox.domain.timestamps import from_ms, to_ms
from webhook_inbox.ledger.deadlines import overdue_at
from webhook_inbox.ledger.due_handlers import DueHandlers
from webhook_inbox.ledger.schema import (
    RUN_LIFE,
    RUN_PREFIX,
    due_entry,
    event_from,
    hold,
    live,
    run_from,
    run_identity,
    transition,
)
from webhook_inbox.ledger.settle import as_seen, extend_life
from webhook_inbox.queue.lanes import Backlogs, Lanes
from webhook_inbox.queue.message import RunMessage
from webhook_inbox.reconciler.report import Action, ReconcilerReport


class UnsentRuns:
    """Checks the runs of events, a page of the index at a time."""

    def __init__(
        self,
        manifest: Manifest,
        ports: Ports,
        *,
        backlogs: Backlogs,
        report: ReconcilerReport,
        now: datetime,
    ) -> None:
        self._manifest = manifest
        self._table = ports.table
        self._lanes = Lanes(ports.queues)
        self._listed = DueHandlers(ports.table)
        self._backlogs = backlogs
        self._report = report
        self._now = now

    def look(self, entries: Sequence[Item], lanes: Collection[str], *, second: bool) -> bool:
        """Checks the runs of these events in these lanes; returns False if a call failed.

        The index entries name the runs, whose rows are read a hundred in a call.

        Args:
            entries: entries of the index `by_received`.
            lanes: the lanes to check.
            second: whether this is the last look at these events.

        Raises:
            Unavailable: so many calls failed that the service seems to be down.
        """
        wanted = {
            Key(entry["pk"], RUN_PREFIX + name): entry
            for entry in entries
            for name in entry["runs"]
            if self._manifest.lane_of(name) in lanes
        }
        rows: dict[Key, Item] = {}
        # Runs whose rows are unreadable count as missing; their adoption then fails one by one.
        if not self._report.attempt(lambda keys: rows.update(self._rows(keys)), list(wanted)):
            return False
        done = [
            self._report.attempt(self._watch, key)
            for key, row in rows.items()
            if second and row["status"] == Status.PROCESSING and "due_bucket" not in row
        ]
        # No message of a held event is received that could do so.
        done += [
            self._report.attempt(self._extend_life, key)
            for key in rows
            if second and "held" in wanted[key]
        ]
        for key, entry in wanted.items():
            if key not in rows and (second or not self._is_queued(key, entry)):
                done.append(self._report.attempt(self._adopt, key))
        return all(done)

    def _rows(self, keys: Sequence[Key]) -> dict[Key, Item]:
        found = self._table.get_many(keys, only=("pk", "sk", "status", "due_bucket"))
        return {Key(row["pk"], row["sk"]): row for row in found}

    def _is_queued(self, key: Key, entry: Item) -> bool:
        """Returns whether the lane's backlog explains that a run has not begun."""
        handler = key.sk.removeprefix(RUN_PREFIX)
        if self._manifest.handler(handler) is None and handler != SPLIT:
            return False  # Its lane is not known here.
        lane = self._manifest.lane_of(handler)
        age = self._now - from_ms(entry["received_at"])
        return self._backlogs.explained_age(lane) >= age

    def _adopt(self, key: Key) -> None:
        row = live(self._table.get(Key(key.pk, "event")), self._now)
        if row is None:
            return
        event, handler = event_from(row, b""), key.sk.removeprefix(RUN_PREFIX)
        self._listed.ensure(handler, until=event.received_at + RUN_LIFE)
        if event.held:
            held = hold(self._table, event, handler)
            self._report.add(Action.ADOPTED if held else Action.MOVED_ON)
            return
        change = Change(
            set={
                **run_identity(event, handler, expires_at=event.received_at + RUN_LIFE),
                **due_entry(key, overdue_at(self._now)),
                "status": str(Status.PENDING),
                "last_at": to_ms(self._now),
            },
            default={"first_at": to_ms(self._now)},
        )
        try:
            transition(self._table, key, change, when=Absent("pk"))
        except ConditionFailed:
            self._report.add(Action.MOVED_ON)
            return
        # If the send fails, the run is overdue later, since it is in the due index now.
        reference = RunMessage.first(event, handler)
        self._lanes.send([(self._manifest.lane_of(handler), reference)])
        self._report.add(Action.ADOPTED)

    def _extend_life(self, key: Key) -> None:
        event, run = self._table.get(Key(key.pk, "event")), self._table.get(key)
        if event is not None and run is not None:
            extend_life(self._table, run_from(run), event_from(event, b""))

    def _watch(self, key: Key) -> None:
        # A first attempt is not in the due index. If its worker crashed and its message is lost,
        # no other pass would find it.
        row = self._table.get(key)
        run = run_from(row) if row else None
        if run is None or run.status is not Status.PROCESSING or run.in_due_index:
            return
        # This pass has read the due index already.
        due = max(overdue_at(run.claimed_until or self._now), self._now + timedelta(minutes=1))
        change = Change(set=due_entry(key, due))
        try:
            self._table.update(key, change, when=every(as_seen(run), Absent("due_bucket")))
        except ConditionFailed:
            self._report.add(Action.MOVED_ON)
            return
        self._report.add(Action.WATCHED)
