"""The life of a process, which a test may end between two steps.

A dead process has no effect: every double checks for life before it writes, sends or answers.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, NamedTuple

from webhook_inbox.destinations.gate import WAITS_FOR
from webhook_inbox.domain.conditions import Condition
from webhook_inbox.domain.model import Status
from webhook_inbox.domain.ports import Change, Item, Key, Table
from webhook_inbox.handlers.completions.tokens import COMPLETION
from webhook_inbox.handlers.effects.journal import EffectState
from webhook_inbox.ledger.schema import RUN_PREFIX, WAIT_PREFIX
from webhook_inbox.testing.errors import KitError, hidden

__tracebackhide__ = hidden


class Died(BaseException):
    """The process died. A handler that catches this has no further effect."""


class Step(Enum):
    """A recorded step of a run, after which a process can die.

    The row is written, and what follows is not done: no message is sent, changed or deleted.
    """

    HOLD = "the run is held"
    APPROVAL = "an operator has approved the held run"
    WAIT = "the run waits for a job of `ctx.wait_for`"
    COMPLETION = "the end of that job is recorded"
    DEFERRAL = "the run is deferred for another reason"
    PAUSE = "the run waits for a destination: open circuit, pause or rate"

    def __str__(self) -> str:
        return f"Step.{self.name}"


class Moment(Enum):
    """The step of an effect at which a worker dies."""

    STARTED = "started"  # the start is recorded, the function not called
    HAPPENED = "happened"  # the function returned, the commit is not recorded
    COMMITTED = "committed"  # the commit is recorded


class CrashPlace(NamedTuple):
    """The place of a crash: a step of a run, or a moment of the effect `name`."""

    at: Step | Moment
    name: str = ""

    def __str__(self) -> str:
        return str(self.at) if isinstance(self.at, Step) else f"the effect {self.name!r}"


@dataclass(slots=True)
class WorkerLife:
    """The state of the process, and the place at which it dies.

    Attributes:
        alive: False once it died.
        ends: the place at which it dies, or None.
        starts: the number of starts of each effect, by its row's key.
        reached: the effects and steps reached since `expect`.
        fault: the error of the test that ended it, or None.
    """

    alive: bool = True
    ends: CrashPlace | None = None
    starts: dict[Key, int] = field(default_factory=dict)
    reached: list[str] = field(default_factory=list)
    fault: KitError | None = None

    def check(self) -> None:
        """Raises Died if the process is dead."""
        if not self.alive:
            raise Died

    def reach(self, place: CrashPlace) -> None:
        """Ends the process at the expected place."""
        if isinstance(place.at, Step):
            self.reached.append(str(place))
        elif place.at is Moment.STARTED:
            self.reached.append(place.name)
        if self.ends == place:
            self.alive = False
            raise Died

    def fail(self, fault: KitError) -> None:
        """Ends the process because of a faulty test; `begin` raises the fault in the test."""
        self.alive, self.fault = False, fault
        raise Died

    def expect(self, ends: CrashPlace | None) -> None:
        """Sets the place at which the process dies."""
        self.ends = ends
        self.reached.clear()

    def begin(self) -> None:
        """Starts a new process; raises KitError if the one before it ended by `fail`."""
        fault, self.fault = self.fault, None
        self.alive, self.ends = True, None
        self.reached.clear()
        if fault is not None:
            raise fault


class Crash:
    """A `with` block in which a process dies at a place; `what` names the block in its error.

    Raises:
        KitError: on exit, no process reached the place; on entry, another crash is placed.
    """

    def __init__(self, life: WorkerLife, place: CrashPlace, what: str) -> None:
        self._life, self._place, self._what = life, place, what

    def __enter__(self) -> None:
        if self._life.ends is not None:
            raise KitError("a worker dies once: a crash is placed already")
        self._life.expect(self._place)

    def __exit__(self, error: object, *_: object) -> None:
        missed, reached = self._life.ends is not None, ", ".join(self._life.reached) or "none"
        self._life.expect(None)
        if missed and error is None:
            raise KitError(f"the {self._what} did not reach {self._place}; it reached: {reached}")


def _step(key: Key, change: Change) -> Step | None:
    """Returns the step that a write records, if it is one."""
    values = change.set
    if key.sk.startswith(WAIT_PREFIX):
        return Step.COMPLETION if "digest" in values else None
    if not key.sk.startswith(RUN_PREFIX):
        return None
    if "approvals" in values:
        return Step.APPROVAL
    if values.get("status") == Status.HELD:
        return Step.HOLD
    return _wait(values.get("waits_for", "")) if values.get("status") == Status.DEFERRED else None


def _wait(waits_for: str) -> Step:
    if waits_for.startswith(WAITS_FOR):
        return Step.PAUSE
    return Step.WAIT if waits_for.startswith(COMPLETION) else Step.DEFERRAL


class WorkersTable:
    """The table as one process sees it: its writes may end the process's life.

    It forwards every other method of `Table` while the process lives.
    """

    def __init__(self, table: Table, life: WorkerLife) -> None:
        self._table = table
        self._life = life

    def __getattr__(self, name: str) -> Any:
        self._life.check()
        return getattr(self._table, name)

    def update(self, key: Key, change: Change, *, when: Condition | None = None) -> Item:
        """See the port."""
        self._life.check()

        def write() -> Item:
            return self._table.update(key, change, when=when)

        if "idempotency_key" in change.set:
            return self._update_effect(key, change, write)
        row, step = write(), _step(key, change)
        if step is not None:
            self._life.reach(CrashPlace(step))
        return row

    def _update_effect(self, key: Key, change: Change, write: Callable[[], Item]) -> Item:
        life, name = self._life, change.set.get("name", "")
        state = change.set.get("status", "")
        if state == EffectState.COMMITTED:
            life.reach(CrashPlace(Moment.HAPPENED, name))
        row = write()
        if state == EffectState.STARTED:
            life.starts[key] = life.starts.get(key, 0) + 1
            life.reach(CrashPlace(Moment.STARTED, name))
        elif state == EffectState.COMMITTED:
            life.reach(CrashPlace(Moment.COMMITTED, name))
        return row
