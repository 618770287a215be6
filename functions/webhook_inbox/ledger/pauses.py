"""Pauses and resumes handlers and tenants without a deployment.

    (no row) ──► paused ──► not paused ──► paused …

While a handler or a tenant is paused, the processor parks its runs and the reconciler reads each of
them once per `RECHECK`; attempts in progress are not interrupted. After the resumption the
reconciler resumes the runs at the drain rate of their handlers.

A worker reads the row of each handler that it serves, and the rows of all paused tenants in one
query, so that its reads do not grow with the tenants that it serves. At most `TENANTS` tenants are
paused at a time; the row of a resumed tenant expires.
"""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final

from webhook_inbox.domain.audit import Actor, AuditedAction
from webhook_inbox.domain.conditions import Absent, Equals, either
from webhook_inbox.domain.errors import ConditionFailed, Unavailable
from webhook_inbox.domain.ports import Change, Clock, Item, Key, Randomness, Table
from webhook_inbox.domain.timestamps import from_ms, to_ms, to_seconds
from webhook_inbox.ledger import audit
from webhook_inbox.ledger.audit import AuditRecord
from webhook_inbox.ledger.schema import transition

CONTROL_PK: Final = "control"
HANDLER_PREFIX: Final = "handler#"
TENANT_PREFIX: Final = "tenant#"
# The `waits_for` of the runs of a paused handler, and of a paused tenant.
RESUMPTION: Final = "resumption"
TENANT_RESUMPTION: Final = "the resumption of its tenant"
RESUMPTIONS: Final = frozenset({RESUMPTION, TENANT_RESUMPTION})
# The interval at which the reconciler reads such a run again.
RECHECK: Final = timedelta(hours=1)
# After a resumption, runs may still be parked for this long: by a worker that had read the old
# state, or by a slow one.
RESUMING: Final = 2 * RECHECK
# The row of a resumed tenant is read by the reconciler for `RESUMING` only.
TENANT_LIFE: Final = 2 * RESUMING
# How long a worker caches the state of a handler, and of the tenants.
CACHE_TTL: Final = timedelta(seconds=5)
# The tenants that may be paused at a time: a query of their rows reads up to 300 KB.
TENANTS: Final = 1000


class Subject(StrEnum):
    """The kinds of names that can be paused; the value is the prefix of the row's key."""

    HANDLER = "handler"
    TENANT = "tenant"


@dataclass(frozen=True, slots=True)
class Pause:
    """The state of a handler or tenant that was paused once; `at` is when it was paused last."""

    subject: Subject
    name: str
    paused: bool
    by: str
    reason: str
    at: datetime
    changed_at: datetime

    @classmethod
    def of(cls, row: Item) -> "Pause":
        """Reads a row."""
        subject, _, name = row["sk"].partition("#")
        return cls(
            subject=Subject(subject),
            name=name,
            paused=row["paused"],
            by=row["by"],
            reason=row["reason"],
            at=from_ms(row["at"]),
            changed_at=from_ms(row["changed_at"]),
        )

    def was_resumed(self, *, since: datetime) -> bool:
        """Tells whether it was resumed since then."""
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


class TenantPauses:
    """Tells a worker which tenants are paused; caches the paused ones for 5 seconds."""

    def __init__(self, table: Table, clock: Clock) -> None:
        self._table = table
        self._clock = clock
        self._read_at: datetime | None = None
        self._reasons: Mapping[str, str] = {}

    def paused(self, tenant: str) -> str | None:
        """Returns why a tenant is paused, None if it is not or if there is no tenant ("").

        While the ledger does not answer, the cached answer is used; without one, None.
        """
        now = self._clock.now()
        if tenant and (self._read_at is None or now - self._read_at >= CACHE_TTL):
            self._read_at = now
            with suppress(Unavailable):
                self._reasons = self._read()
        return self._reasons.get(tenant)

    def _read(self) -> dict[str, str]:
        rows = map(Pause.of, self._table.query(CONTROL_PK, sk_prefix=TENANT_PREFIX))
        return {control.name: control.reason for control in rows if control.paused}


def control_key(name: str, subject: Subject = Subject.HANDLER) -> Key:
    """Returns the key of the control row of a handler or tenant."""
    return Key(CONTROL_PK, f"{subject}#{name}")


# The state of each handler that was ever paused, and of each tenant that was paused lately.
Controls = Mapping[tuple[Subject, str], Pause]


def controls(table: Table) -> Controls:
    """Returns the state of handlers and tenants by subject and name; one query.

    Raises:
        Unavailable: the table failed.
    """
    rows = map(Pause.of, table.query(CONTROL_PK))
    return {(control.subject, control.name): control for control in rows}


@dataclass(frozen=True, slots=True)
class PauseRequest:
    """A request to pause or resume a handler or a tenant."""

    name: str
    by: Actor
    reason: str
    now: datetime
    subject: Subject = Subject.HANDLER

    @property
    def key(self) -> Key:
        """The key of the control row."""
        return control_key(self.name, self.subject)


def pause(table: Table, randomness: Randomness, request: PauseRequest) -> Pause | None:
    """Pauses a handler or a tenant; returns the pause that was in force before, None for none.

    Raises:
        Unavailable: the table failed; it may be paused.
    """
    recorded = _audit(table, randomness, AuditedAction.PAUSE, request)
    now = to_ms(request.now)
    change = Change(
        set={
            "paused": True,
            "by": str(request.by),
            "reason": request.reason,
            "at": now,
            "changed_at": now,
        },
        remove=("expires_at",),
    )
    not_paused = either(Absent("pk"), Equals("paused", value=False))
    try:
        transition(table, request.key, change, when=not_paused)
    except ConditionFailed as error:
        recorded.conclude({"unchanged": 1})
        return Pause.of(error.old) if error.old else None
    recorded.conclude({"paused": 1})
    return None


def resume(table: Table, randomness: Randomness, request: PauseRequest) -> bool:
    """Resumes a handler or a tenant; False if it was not paused.

    Raises:
        Unavailable: the table failed; it may be resumed.
    """
    recorded = _audit(table, randomness, AuditedAction.RESUME, request)
    ends = {"expires_at": to_seconds(request.now + TENANT_LIFE)}
    change = Change(
        set={
            "paused": False,
            "by": str(request.by),
            "reason": request.reason,
            "changed_at": to_ms(request.now),
            **(ends if request.subject is Subject.TENANT else {}),
        }
    )
    try:
        transition(table, request.key, change, when=Equals("paused", value=True))
    except ConditionFailed:
        recorded.conclude({"unchanged": 1})
        return False
    recorded.conclude({"resumed": 1})
    return True


def _audit(
    table: Table, randomness: Randomness, action: AuditedAction, request: PauseRequest
) -> AuditRecord:
    return audit.record(
        table,
        randomness,
        action=action,
        by=request.by,
        reason=request.reason,
        request={str(request.subject): request.name},
        now=request.now,
    )
