"""The doubles as the simulation watches them."""

from collections.abc import Iterator
from datetime import datetime

from webhook_inbox.instants import from_ms, to_ms
from webhook_inbox.memory import MemoryTable
from webhook_inbox.memory.clock import START
from webhook_inbox.memory.table import Lag
from webhook_inbox.ports import Item, Key

Write = tuple[Key, Item | None, Item | None]


class VirtualClock:
    """Virtual time, in whole milliseconds; it moves when the scheduler says so."""

    def __init__(self) -> None:
        self.ms = to_ms(START)

    def now(self) -> datetime:
        """See the port."""
        return from_ms(self.ms)

    def sleep(self, seconds: float) -> None:
        """Nobody sleeps here: a sleeping program is a call that is answered later."""
        raise AssertionError(f"a double slept {seconds} s")


class ObservedTable(MemoryTable):
    """A table that notes each write: the key, the row before, the row after."""

    def __init__(self, *, lag: Lag | None = None) -> None:
        super().__init__(lag=lag)
        self.written: list[Write] = []

    def _store(self, key: Key, row: Item | None) -> None:
        self.written.append((key, self._row(key), row))
        super()._store(key, row)

    def rows(self) -> Iterator[Item]:
        """Yields the rows themselves: to look at, not to change."""
        for partition in self._rows.values():
            yield from partition.values()

    def row(self, key: Key) -> Item | None:
        """Returns the row itself: to look at, not to change."""
        return self._row(key)

    def is_empty(self, index: str, value: str) -> bool:
        """Tells whether an index holds nothing under this value, and never will by lagging."""
        return not self._unseen and not self._views[index].holds_any(value)
