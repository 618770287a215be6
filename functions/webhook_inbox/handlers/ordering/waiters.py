"""The runs that wait for a predecessor, and their resumption.

A waiting run writes its row before it is deferred, and reads the ordering key's state after that. A
predecessor records its number before it looks for the next row. So the later of the two sees the
other's write, and no resume is lost.
"""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from webhook_inbox.domain.conditions import Absent
from webhook_inbox.domain.errors import ConditionFailed, Unavailable
from webhook_inbox.domain.model import SETTLED, Run, Status
from webhook_inbox.domain.ports import Key, Ports
from webhook_inbox.domain.timestamps import from_ms, to_ms, to_seconds
from webhook_inbox.handlers.ordering.key_state import KeyState
from webhook_inbox.ledger.deferral import resume
from webhook_inbox.ledger.schema import RUN_LIFE, run_from, run_key
from webhook_inbox.ledger.settle import as_seen
from webhook_inbox.queue.lanes import Lanes
from webhook_inbox.queue.message import RunMessage

# The `waits_for` of a run that is deferred until its turn.
ORDER: Final = "order"
WAITER: Final = "waiter#"
# Pads numbers so that they sort as text.
DIGITS: Final = 20


@dataclass(frozen=True, slots=True)
class Waiter:
    """A waiting run."""

    number: int
    event_id: str


class Waiters:
    """Records and resumes the runs that wait for a predecessor."""

    def __init__(self, ports: Ports) -> None:
        self._table = ports.table
        self._lanes = Lanes(ports.queues)
        self._clock = ports.clock

    def enter(self, state: KeyState, run: Run, number: int) -> datetime:
        """Records that a run waits, and returns the begin of its wait.

        Raises:
            Unavailable: the table failed; the row may be written.
        """
        now = self._clock.now()
        key = _key(state, number, run.event_id)
        row = {
            "pk": key.pk,
            "sk": key.sk,
            "number": number,
            "event_id": run.event_id,
            "since": to_ms(now),
            "expires_at": to_seconds(run.expires_at or now + RUN_LIFE),
        }
        try:
            self._table.put(row, when=Absent("pk"))
        except ConditionFailed as error:
            return from_ms(error.old["since"]) if error.old else now
        return now

    def leave(self, state: KeyState, run: Run, number: int) -> None:
        """Deletes a run's row; a row that remains is harmless and expires."""
        with suppress(Unavailable):
            self._table.delete(_key(state, number, run.event_id))

    def between(self, state: KeyState, low: int, high: int) -> Iterator[Waiter]:
        """Yields the waiters with numbers above `low` and below `high`, in order.

        Raises:
            Unavailable: the table failed.
        """
        for row in self._table.query(state.key.pk, sk_prefix=WAITER):
            if row["number"] >= high:
                return
            if row["number"] > low:
                yield Waiter(row["number"], row["event_id"])

    def resume_those_with(self, state: KeyState, run: Run, number: int, lane: str) -> None:
        """Resumes every run with this number, after `run` applied the one before.

        If the table or the queue fails, they resume at the end of their deferral.
        """
        with suppress(Unavailable):
            for row in self._table.query(state.key.pk, sk_prefix=_prefix(number)):
                self.resume(run.source, row["event_id"], run.handler, lane)

    def resume(self, source: str, event_id: str, handler: str, lane: str) -> None:
        """Resumes a run that is deferred until its turn.

        Raises:
            Unavailable: the table or the queue failed; the reconciler sends it.
        """
        run = self.run(source, event_id, handler)
        if run is None or not run.parked or run.waits_for != ORDER:
            return
        # A concurrent writer, such as the reconciler, sends it as well.
        with suppress(ConditionFailed):
            resume(self._table, run, unchanged=as_seen(run), now=self._clock.now())
            self._lanes.send([(lane, RunMessage.of(run))])

    def lives(self, source: str, event_id: str, handler: str) -> bool:
        """Returns whether a run may still apply its number; raises Unavailable."""
        run = self.run(source, event_id, handler)
        return run is not None and run.status not in {*SETTLED, Status.DEAD_LETTER}

    def run(self, source: str, event_id: str, handler: str) -> Run | None:
        """Returns a run, or None; raises Unavailable."""
        row = self._table.get(run_key(source, event_id, handler))
        return None if row is None else run_from(row)


def _key(state: KeyState, number: int, event_id: str) -> Key:
    return Key(state.key.pk, _prefix(number) + event_id)


def _prefix(number: int) -> str:
    return f"{WAITER}{number:0{DIGITS}d}#"
