"""Handlers that a person has paused, and resumed, without a deployment.

    (no row) ──► paused ──► not paused ──► paused …

A paused handler begins no attempt: the processor parks its runs, and the reconciler looks at each
once in `RECHECK`. What is running ends as it would. Once the handler is resumed the reconciler
wakes its runs, at the drain rate.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from webhook_inbox.domain.conditions import Absent, Equals, either
from webhook_inbox.domain.errors import ConditionFailed, Unavailable
from webhook_inbox.domain.ports import Change, Clock, Item, Key, Randomness, Table
from webhook_inbox.domain.timestamps import from_ms, to_ms
from webhook_inbox.ledger import audit
from webhook_inbox.ledger.schema import carries

CONTROL_PK: Final = "control"
HANDLER_PREFIX: Final = "handler#"
# What the runs of a paused handler wait for: their `waits_for`.
RESUMPTION: Final = "resumption"
# How long such a run waits before somebody looks whether it still has to.
RECHECK: Final = timedelta(hours=1)
# For so long after it was resumed runs may wait that nobody has looked at since: they were parked
# by a worker that had not heard of it, or later by a slow one.
RESUMING: Final = 2 * RECHECK
# How long a worker goes by what it has read.
REMEMBERED: Final = timedelta(seconds=5)


@dataclass(frozen=True, slots=True)
class HandlerPause:
    """What a person has said of a handler; `at` is when it was paused last."""

    handler: str
    paused: bool
    by: str
    reason: str
    at: datetime
    changed_at: datetime

    @classmethod
    def of(cls, row: Item) -> "HandlerPause":
        """Reads a row."""
        return cls(
            handler=row["sk"].removeprefix(HANDLER_PREFIX),
            paused=row["paused"],
            by=row["by"],
            reason=row["reason"],
            at=from_ms(row["at"]),
            changed_at=from_ms(row["changed_at"]),
        )

    def was_resumed(self, *, since: datetime) -> bool:
        """Tells whether the handler was resumed since then."""
        return not self.paused and self.changed_at >= since


class HandlerPauses:
    """Tells a worker which handlers are paused; it remembers for 5 seconds."""

    def __init__(self, table: Table, clock: Clock) -> None:
        self._table = table
        self._clock = clock
        self._known: dict[str, tuple[datetime, str | None]] = {}

    def paused(self, handler: str) -> str | None:
        """Returns why a handler is paused, None where it is not.

        While the ledger does not answer, the last answer stands; without one nothing is paused.
        """
        now = self._clock.now()
        read_at, reason = self._known.get(handler, (None, None))
        if read_at is None or now - read_at >= REMEMBERED:
            reason = self._read(handler, before=reason)
            self._known[handler] = (now, reason)
        return reason

    def _read(self, handler: str, *, before: str | None) -> str | None:
        try:
            row = self._table.get(control_key(handler))
        except Unavailable:
            return before
        return row["reason"] if row is not None and row["paused"] else None


def control_key(handler: str) -> Key:
    """Returns the key of a handler's control row."""
    return Key(CONTROL_PK, HANDLER_PREFIX + handler)


def controls(table: Table) -> dict[str, HandlerPause]:
    """Returns what people have said of handlers, by name; one query.

    Raises:
        Unavailable: the table failed.
    """
    rows = table.query(CONTROL_PK, sk_prefix=HANDLER_PREFIX)
    return {control.handler: control for control in map(HandlerPause.of, rows)}


@dataclass(frozen=True, slots=True)
class PauseRequest:
    """What a person wants of a handler, and why."""

    handler: str
    by: str
    reason: str
    now: datetime


def pause(table: Table, randomness: Randomness, wish: PauseRequest) -> HandlerPause | None:
    """Pauses a handler; returns the pause that is in force already, None where this is it.

    Raises:
        Unavailable: the table failed; it may be paused.
    """
    _audit(table, randomness, "pause", wish)
    now = to_ms(wish.now)
    change = Change(
        set={"paused": True, "by": wish.by, "reason": wish.reason, "at": now, "changed_at": now}
    )
    try:
        table.update(
            control_key(wish.handler),
            change,
            when=either(Absent("pk"), Equals("paused", value=False)),
        )
    except ConditionFailed as error:
        if error.old is None or carries(error.old, change.set):
            return None  # Our own: an earlier try of this call succeeded, its answer was lost.
        return HandlerPause.of(error.old)
    return None


def resume(table: Table, randomness: Randomness, wish: PauseRequest) -> bool:
    """Resumes a handler; False if it was not paused.

    Raises:
        Unavailable: the table failed; it may be resumed.
    """
    _audit(table, randomness, "resume", wish)
    change = Change(
        set={
            "paused": False,
            "by": wish.by,
            "reason": wish.reason,
            "changed_at": to_ms(wish.now),
        }
    )
    try:
        table.update(control_key(wish.handler), change, when=Equals("paused", value=True))
    except ConditionFailed as error:
        return carries(error.old, change.set)
    return True


def _audit(table: Table, randomness: Randomness, action: str, wish: PauseRequest) -> None:
    audit.record(
        table,
        randomness,
        action=action,
        by=wish.by,
        reason=wish.reason,
        request={"handler": wish.handler},
        now=wish.now,
    )
