"""The life of a worker, which a test may end in the middle of an attempt.

A worker that is gone does nothing any more: it writes nothing, sends nothing, calls nobody. So
every double asks first whether it lives.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from webhook_inbox.domain.conditions import Condition
from webhook_inbox.domain.ports import Change, Item, Key, Page, Table
from webhook_inbox.handlers.effects.journal import EffectState


class Died(BaseException):
    """The worker is gone. No handler should catch it; one that does is not heard of any more."""


class Moment(StrEnum):
    """When a worker dies, as seen from an effect."""

    STARTED = "started"  # its start is recorded, and it was not called
    HAPPENED = "happened"  # it was called, and that is not recorded
    COMMITTED = "committed"  # it is recorded, and nothing after it was done


@dataclass(slots=True)
class WorkerLife:
    """Whether the worker lives, and at what it dies.

    Attributes:
        alive: whether it does.
        ends: the effect and the moment at which it dies, None where it does not.
        starts: how often each effect was started, by its row's key.
        names: the effects that were come to since it was told what to expect.
    """

    alive: bool = True
    ends: tuple[str, Moment] | None = None
    starts: dict[Key, int] = field(default_factory=dict)
    names: list[str] = field(default_factory=list)

    def check(self) -> None:
        """Lets only the living act."""
        if not self.alive:
            raise Died

    def reach(self, name: str, moment: Moment) -> None:
        """Ends the life where a test said so."""
        if self.ends == (name, moment):
            self.alive = False
            raise Died

    def expect(self, ends: tuple[str, Moment] | None) -> None:
        """Tells the worker at what it dies in what it begins now."""
        self.ends = ends
        self.names.clear()

    def begin(self) -> None:
        """Lets another worker take over."""
        self.alive, self.ends = True, None
        self.names.clear()


class WorkersTable:
    """The table as a worker has it, which dies at what it writes of effects."""

    def __init__(self, table: Table, life: WorkerLife) -> None:
        self._table = table
        self._life = life

    def get(self, key: Key, *, consistent: bool = True) -> Item | None:
        """See the port."""
        self._life.check()
        return self._table.get(key, consistent=consistent)

    def get_many(self, keys: Sequence[Key]) -> list[Item]:
        """See the port."""
        self._life.check()
        return self._table.get_many(keys)

    def put(self, item: Item, *, when: Condition | None = None) -> None:
        """See the port."""
        self._life.check()
        self._table.put(item, when=when)

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

    def delete(self, key: Key) -> None:
        """See the port."""
        self._life.check()
        self._table.delete(key)

    def query(self, pk: str, *, sk_prefix: str = "", consistent: bool = True) -> Iterator[Item]:
        """See the port."""
        self._life.check()
        return self._table.query(pk, sk_prefix=sk_prefix, consistent=consistent)

    def query_index(
        self,
        index: str,
        value: str,
        *,
        low: int,
        high: int,
        newest_first: bool = False,
        limit: int | None = None,
        start: Mapping[str, Any] | None = None,
    ) -> Page:
        """See the port."""
        self._life.check()
        return self._table.query_index(
            index,
            value,
            low=low,
            high=high,
            newest_first=newest_first,
            limit=limit,
            start=start,
        )
