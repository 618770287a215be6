"""The life of a worker, which a test may end in the middle of an attempt.

A dead worker has no effect: every double checks for life before it writes, sends or answers.
"""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from webhook_inbox.domain.conditions import Condition
from webhook_inbox.domain.ports import Change, Item, Key, Table
from webhook_inbox.handlers.effects.journal import EffectState


class Died(BaseException):
    """The worker died. A handler that catches this has no further effect."""


class Moment(StrEnum):
    """The step of an effect at which a worker dies."""

    STARTED = "started"  # the start is recorded, the function not called
    HAPPENED = "happened"  # the function returned, the commit is not recorded
    COMMITTED = "committed"  # the commit is recorded


@dataclass(slots=True)
class WorkerLife:
    """The state of the worker, and the step at which it dies.

    Attributes:
        alive: False once it died.
        ends: the effect and the step at which it dies, or None.
        starts: the number of starts of each effect, by its row's key.
        names: the effects started since `expect`.
    """

    alive: bool = True
    ends: tuple[str, Moment] | None = None
    starts: dict[Key, int] = field(default_factory=dict)
    names: list[str] = field(default_factory=list)

    def check(self) -> None:
        """Raises Died if the worker is dead."""
        if not self.alive:
            raise Died

    def reach(self, name: str, moment: Moment) -> None:
        """Ends the worker's life at the expected step."""
        if self.ends == (name, moment):
            self.alive = False
            raise Died

    def expect(self, ends: tuple[str, Moment] | None) -> None:
        """Sets the step at which the worker dies."""
        self.ends = ends
        self.names.clear()

    def begin(self) -> None:
        """Starts a new worker."""
        self.alive, self.ends = True, None
        self.names.clear()


class WorkersTable:
    """The table as one worker sees it: its writes of effects may end the worker's life.

    It forwards every other method of `Table` while the worker lives.
    """

    def __init__(self, table: Table, life: WorkerLife) -> None:
        self._table = table
        self._life = life

    def __getattr__(self, name: str) -> Any:
        self._life.check()
        return getattr(self._table, name)

    def update(self, key: Key, change: Change, *, when: Condition | None = None) -> Item:
        """See the port."""
        life = self._life
        life.check()
        effect = "idempotency_key" in change.set
        name, state = change.set.get("name", ""), change.set.get("status", "")
        if effect and state == EffectState.COMMITTED:
            life.reach(name, Moment.HAPPENED)
        row = self._table.update(key, change, when=when)
        if effect and state == EffectState.STARTED:
            life.starts[key] = life.starts.get(key, 0) + 1
            life.names.append(name)
            life.reach(name, Moment.STARTED)
        elif effect and state == EffectState.COMMITTED:
            life.reach(name, Moment.COMMITTED)
        return row
