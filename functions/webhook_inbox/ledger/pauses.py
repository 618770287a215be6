"""Pauses and resumes handlers without a deployment.

    (no row) ──► paused ──► not paused ──► paused …

While a handler is paused, the processor parks its runs and the reconciler reads each of them once
per `RECHECK`; attempts in progress are not interrupted. After the resumption the reconciler resumes
the runs at the drain rate.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from webhook_inbox.domain.conditions import Absent, Equals, either
from webhook_inbox.domain.errors import ConditionFailed, Unavailable
from webhook_inbox.domain.ports import Change, Clock, Item, Key, Randomness, Table
from webhook_inbox.domain.timestamps import from_ms, to_ms
from webhook_inbox.ledger import audit
from webhook_inbox.ledger.audit import Actor, AuditRecord
from webhook_inbox.ledger.schema import transition

CONTROL_PK: Final = "control"
HANDLER_PREFIX: Final = "handler#"
# The `waits_for` of a paused handler's runs.
RESUMPTION: Final = "resumption"
# The interval at which the reconciler reads such a run again.
RECHECK: Final = timedelta(hours=1)
# After a resumption, runs may still be parked for this long: by a worker that had read the old
# state, or by a slow one.
RESUMING: Final = 2 * RECHECK
# How long a worker caches the state of a handler.
CACHE_TTL: Final = timedelta(seconds=5)


@dataclass(frozen=True, slots=True)
class HandlerPause:
    """The state of a handler that was paused at least once; `at` is when it was paused last."""

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
    """Tells a worker which handlers are paused; caches the answer for 5 seconds."""

    def __init__(self, table: Table, clock: Clock) -> None:
        self._table = table
        self._clock = clock
        self._known: dict[str, tuple[datetime, str | None]] = {}

    def paused(self, handler: str) -> str | None:
        """Returns why a handler is paused, None if it is not.

        While the ledger does not answer, the cached answer is used; without one, None.
        """
        now = self._clock.now()
        read_at, reason = self._known.get(handler, (None, None))
        if read_at is None or now - read_at >= CACHE_TTL:
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
    """Returns the state of every handler that was ever paused, by name; one query.

    Raises:
        Unavailable: the table failed.
    """
    rows = table.query(CONTROL_PK, sk_prefix=HANDLER_PREFIX)
    return {control.handler: control for control in map(HandlerPause.of, rows)}


@dataclass(frozen=True, slots=True)
class PauseRequest:
    """A request to pause or resume a handler."""

    handler: str
    by: Actor
    reason: str
    now: datetime


def pause(table: Table, randomness: Randomness, request: PauseRequest) -> HandlerPause | None:
    """Pauses a handler; returns the pause that was already in force, None if there was none.

    Raises:
        Unavailable: the table failed; it may be paused.
    """
    recorded = _audit(table, randomness, "pause", request)
    now = to_ms(request.now)
    change = Change(
        set={
            "paused": True,
            "by": str(request.by),
            "reason": request.reason,
            "at": now,
            "changed_at": now,
        }
    )
    not_paused = either(Absent("pk"), Equals("paused", value=False))
    try:
        transition(table, control_key(request.handler), change, when=not_paused)
    except ConditionFailed as error:
        recorded.conclude({"unchanged": 1})
        return HandlerPause.of(error.old) if error.old else None
    recorded.conclude({"paused": 1})
    return None


def resume(table: Table, randomness: Randomness, request: PauseRequest) -> bool:
    """Resumes a handler; False if it was not paused.

    Raises:
        Unavailable: the table failed; it may be resumed.
    """
    recorded = _audit(table, randomness, "resume", request)
    change = Change(
        set={
            "paused": False,
            "by": str(request.by),
            "reason": request.reason,
            "changed_at": to_ms(request.now),
        }
    )
    try:
        transition(table, control_key(request.handler), change, when=Equals("paused", value=True))
    except ConditionFailed:
        recorded.conclude({"unchanged": 1})
        return False
    recorded.conclude({"resumed": 1})
    return True


def _audit(table: Table, randomness: Randomness, action: str, request: PauseRequest) -> AuditRecord:
    return audit.record(
        table,
        randomness,
        action=action,
        by=request.by,
        reason=request.reason,
        request={"handler": request.handler},
        now=request.now,
    )
