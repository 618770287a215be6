"""The line of an ordering key: the serial runs that wait without a message, in order.

    pk = ordering_key#{handler}#{ordering_key}    sk = line#{number}    source, event_id
    same                                          sk = line             entered: the last number

A key has a line only while its first run waits longer than its message should be hidden. The
message of each run is deleted once the run has an entry, so none of them piles up in the queue. The
head is sent into the key's message group like any run: those before it there enter the line.

    enter    before the run is settled or parked, while its message still blocks the group
    head     the first entry whose run has not ended; only the head may be leased
    advance  after a run has ended, or has entered: sends the head if it waits only for its turn

No wake-up is lost: a run that ends is settled before its worker reads the line, and a run that
enters reads the line after its entry is written. A crash before a message is deleted returns the
message, and its worker then repeats the step. Entries of runs that have ended, and second entries
of one run, are removed by the next reader.
"""

from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from webhook_inbox.domain.errors import ConditionFailed
from webhook_inbox.domain.model import SETTLED, Run, Status
from webhook_inbox.domain.ports import Change, Key, Table
from webhook_inbox.domain.timestamps import to_ms, to_seconds
from webhook_inbox.ledger.deadlines import event_end
from webhook_inbox.ledger.deferral import resume
from webhook_inbox.ledger.schema import RUN_LIFE, key_of_run, live, run_from, run_key
from webhook_inbox.ledger.settle import as_seen
from webhook_inbox.queue.lanes import Lanes
from webhook_inbox.queue.message import RunMessage

COUNTER: Final = "line"
ENTRY: Final = "line#"
# The `waits_for` of a run that waits only for the runs before it.
TURN: Final = "turn"
# The reconciler reads such a run this often, in case the run before it ended without a message.
TURN_CHECK: Final = timedelta(hours=6)
# The rows that a reader asks for at once: nearly always the first one is the head.
READ_AHEAD: Final = 5
# An attempt that began before its event's end may outlast it.
ENTRY_MARGIN: Final = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class LineEntry:
    """A run's entry; `run` is None if the run has not begun."""

    number: int
    event_id: str
    run: Run | None


class Line:
    """The line of one ordering key; `blocks` is whether a dead run of its handler blocks it.

    Every method raises Unavailable if table or queue fail; a repeated call completes the work.
    """

    def __init__(self, table: Table, handler: str, ordering_key: str, *, blocks: bool) -> None:
        self._table = table
        self._handler = handler
        self._blocks = blocks
        self._pk = f"ordering_key#{handler}#{ordering_key}"

    def head(self, now: datetime) -> LineEntry | None:
        """Returns the first entry whose run has not ended, None without one."""
        while True:
            rows = list(self._table.query(self._pk, sk_prefix=ENTRY, limit=READ_AHEAD))
            for row in rows:
                if live(row, now) is not None:
                    key = run_key(row["source"], row["event_id"], self._handler)
                    found = self._table.get(key)
                    run = run_from(found) if found else None
                    if run is None or not self._ended(run):
                        number = int(row["sk"].removeprefix(ENTRY))
                        return LineEntry(number, row["event_id"], run)
                self._table.delete(Key(row["pk"], row["sk"]))
            if len(rows) < READ_AHEAD:
                return None

    def waiting(self, now: datetime) -> list[str]:
        """Returns the events of the line in order, for a person; it reads the whole line."""
        rows = self._table.query(self._pk, sk_prefix=ENTRY)
        return list(dict.fromkeys(row["event_id"] for row in rows if live(row, now)))

    def enter(
        self, source: str, event_id: str, *, place: int, run_expires_at: datetime, now: datetime
    ) -> int:
        """Adds a run's entry at the end and returns its number; `place` is kept if it exists."""
        old = self._table.get(_entry_key(self._pk, place)) if place else None
        if old is not None and old["event_id"] == event_id:
            return place
        counted = Change(add={"entered": 1}, set={"expires_at": to_seconds(now + RUN_LIFE)})
        number: int = self._table.update(Key(self._pk, COUNTER), counted)["entered"]
        key = _entry_key(self._pk, number)
        # A run cannot be replayed after its event expired, so it must not block any longer.
        end = event_end(run_expires_at) + ENTRY_MARGIN
        self._table.put(
            {
                "pk": key.pk,
                "sk": key.sk,
                "source": source,
                "event_id": event_id,
                "expires_at": to_seconds(end),
            }
        )
        return number

    def leave(self, place: int) -> None:
        """Removes the entry of a run that has ended."""
        if place:
            self._table.delete(_entry_key(self._pk, place))

    def advance(self, lanes: Lanes, lane: str, now: datetime, *, ended: bool) -> None:
        """Sends the head if it waits only for its turn.

        Args:
            lanes: the queues.
            lane: the lane of the key's runs.
            now: the time.
            ended: whether a run has ended: its worker may have resumed the head before it crashed,
                so a pending head is sent again; SQS removes the duplicate for 5 minutes.
        """
        head = self.head(now)
        if head is None or head.run is None:
            return  # A head that has not begun has its message.
        run = head.run
        if _waits_for_turn(run):
            # The wait for the turn does not count towards the run's maximum age.
            with suppress(ConditionFailed):
                values = {"resumed_at": to_ms(now)}
                resume(self._table, run, unchanged=as_seen(run), now=now, values=values)
        elif not (ended and run.status is Status.PENDING):
            return
        lanes.send([(lane, RunMessage.of(run))])

    def _ended(self, run: Run) -> bool:
        if run.status is Status.DEAD_LETTER:
            return not (self._blocks and run.blocking)
        return run.status in SETTLED


def run_ended(table: Table, run: Run, *, now: datetime) -> None:
    """Continues the line of a run that a person or the reconciler has ended.

    The reconciler's next pass sends the new head.

    Raises:
        Unavailable: the table failed; the reconciler's check of the new head continues the line.
    """
    if not run.place:
        return
    line = Line(table, run.handler, run.ordering_key, blocks=True)
    line.leave(run.place)
    head = line.head(now)
    if head is not None and head.run is not None and _waits_for_turn(head.run):
        with suppress(ConditionFailed):  # It has begun.
            due = Change(set={"due_at": to_ms(now)})
            table.update(key_of_run(head.run), due, when=as_seen(head.run))


def _waits_for_turn(run: Run) -> bool:
    return run.parked and run.waits_for == TURN


def _entry_key(pk: str, number: int) -> Key:
    return Key(pk, f"{ENTRY}{number:012}")
