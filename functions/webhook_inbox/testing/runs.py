"""A run in a test, read from the ledger on each access."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Self

from webhook_inbox.domain.model import Run, Status
from webhook_inbox.domain.ports import Key
from webhook_inbox.handlers.approvals.hold import ApprovalRequest
from webhook_inbox.handlers.completions.results import Ending
from webhook_inbox.handlers.completions.tokens import WaitAddress
from webhook_inbox.handlers.effects.journal import EffectState, decode
from webhook_inbox.testing.errors import KitError, hidden, unknown
from webhook_inbox.testing.runtime import TESTER, InMemoryRuntime

__tracebackhide__ = hidden


@dataclass(frozen=True, slots=True)
class Effect:
    """One effect of a run.

    Attributes:
        name: its name in the handler.
        status: "started" (running or in doubt), "committed" or "failed".
        key: the idempotency key.
        starts: the number of starts over all attempts.
        result: the recorded result, None before.
        error: the last error where it failed or is in doubt, or "".
    """

    name: str
    status: str
    key: str
    starts: int
    result: Any = None
    error: str = ""

    @property
    def committed(self) -> bool:
        """True if its commit is recorded."""
        return self.status == EffectState.COMMITTED

    @property
    def in_doubt(self) -> bool:
        """True if it started and its outcome is unknown."""
        return self.status == EffectState.STARTED


class RecordedEffects(Mapping[str, Effect]):
    """The effects of a run by name."""

    def __init__(self, found: Mapping[str, Effect]) -> None:
        self._found = found

    def __getitem__(self, name: str) -> Effect:
        if name not in self._found:
            raise unknown("effect", name, self._found)
        return self._found[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._found)

    def __len__(self) -> int:
        return len(self._found)

    def __contains__(self, name: object) -> bool:
        return name in self._found

    def __repr__(self) -> str:
        return f"Effects({list(self._found.values())})"


class HandlerRun:
    """One handler's work on one event. Its properties are read from the ledger each time."""

    def __init__(self, runtime: InMemoryRuntime, source: str, event_id: str, handler: str) -> None:
        self._runtime = runtime
        self.source = source
        self.event_id = event_id
        self.handler = handler

    def __repr__(self) -> str:
        error = f": {self.error}" if self.error else ""
        return f"HandlerRun({self.handler} of {self.event_id}: {self.status}{error})"

    @property
    def row(self) -> Run:
        """The run's row in the ledger."""
        for row in self._runtime.overview(self.source, self.event_id).runs:
            if row.handler == self.handler:
                return row
        raise KitError(f"{self.handler} has no run: its message was not processed yet")

    @property
    def status(self) -> Status:
        """The status: "done", "failed", "dead_letter", …; equal to its text."""
        return self.row.status

    @property
    def error(self) -> str:
        """The error of the last attempt, or the reason that it waits; "" for none."""
        return self.row.last_error

    @property
    def attempts(self) -> int:
        """The number of attempts."""
        return self.row.attempt_count

    @property
    def due(self) -> datetime | None:
        """The time of the next attempt."""
        return self.row.next_attempt_at

    @property
    def effects(self) -> RecordedEffects:
        """Its effects by name."""
        rows = self._runtime.overview(self.source, self.event_id).effects
        prefix = f"effect#{self.handler}#"
        own = [row for row in rows if row["sk"].startswith(prefix)]
        return RecordedEffects({row["name"]: self._effect(row) for row in own})

    def settle(self) -> Self:
        """Advances the clock until every run is at rest; see `Inbox.settle`."""
        self._runtime.settle()
        return self

    def approve(self, reason: str = "approved in a test", *, by: str = TESTER.name) -> Self:
        """Approves the held run, which continues; with `Approval`, once enough people have.

        Args:
            reason: the reason.
            by: who approves; with `Approval`, only one of its people can.
        """
        hold, approve = self._hold(), self._runtime.approvals.approve
        return self._operate(lambda: approve(hold, by=replace(TESTER, name=by), reason=reason))

    def deny(self, reason: str = "denied in a test", *, by: str = TESTER.name) -> Self:
        """Denies the held run, which is skipped."""
        hold, deny = self._hold(), self._runtime.approvals.deny
        return self._operate(lambda: deny(hold, by=replace(TESTER, name=by), reason=reason))

    def happened(self, result: Any = None, *, reason: str = "seen in a test") -> Self:
        """Commits the effect in doubt with this result; the run then continues."""
        hold, happened = self._hold(), self._runtime.approvals.happened
        return self._operate(lambda: happened(hold, result, by=TESTER, reason=reason))

    def complete(self, name: str, result: Any = None) -> Self:
        """Completes the job of `ctx.wait_for` with this result."""
        self._runtime.complete(self._place(name), Ending.of(result))
        return self

    def fail(self, name: str, error: str, *, retry: bool = False) -> Self:
        """Fails the job of `ctx.wait_for`; `retry` lets the next attempt start another."""
        self._runtime.complete(self._place(name), Ending.failure(error, retry=retry))
        return self

    def redeliver(self) -> str:
        """Delivers its event again and returns the outcome, "duplicate"."""
        return self._runtime.redeliver(self.source, self.event_id)

    def replay(self, *, force: bool = False, new_keys: bool = False) -> Self:
        """Replays the run as an operator does.

        A run that is done needs `force`. `new_keys` performs its effects again under new keys.
        """
        self._runtime.replay(
            self.source, self.event_id, self.handler, force=force, new_keys=new_keys
        )
        return self

    def _place(self, name: str) -> WaitAddress:
        return WaitAddress(self.source, self.event_id, self.handler, name)

    def _operate(self, action: Callable[[], object]) -> Self:
        self._runtime.operate(action)
        return self

    def _hold(self) -> ApprovalRequest:
        row = self.row
        if row.status is not Status.HELD:
            raise KitError(f"it is not held: {self!r}")
        return ApprovalRequest(row)

    def _effect(self, found: Mapping[str, Any]) -> Effect:
        # Several events may share the row.
        key = Key(found["shared"], "effect") if "shared" in found else Key(found["pk"], found["sk"])
        row = self._runtime.table.get(key) or found
        return Effect(
            name=row["name"],
            status=row["status"],
            key=row["idempotency_key"],
            starts=self._runtime.life.starts.get(key, 0),
            result=decode(row["result"]) if "result" in row else None,
            error=row.get("error", ""),
        )
