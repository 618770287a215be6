"""The system that a handler's effect changes."""

from collections.abc import Hashable
from typing import Any, Final

# The answers to a call: executed, executed before under this key, the key has another body.
DONE: Final = "done"
KNOWN: Final = "known"
USED: Final = "used"


class Sink:
    """Executes calls and remembers their keys and bodies for a time, as Stripe does.

    Attributes:
        executed: the number of executed calls by key.
    """

    def __init__(self) -> None:
        self.executed: dict[str, int] = {}
        # The body of each key, and the time at which the sink forgets the key, in ms.
        self._known: dict[str, tuple[str, int]] = {}

    def post(self, key: str, body: str, *, now: int, until: int) -> str:
        """Executes a call unless its key is known, and remembers the key up to `until`."""
        known = self._known.get(key)
        if known is not None and now < known[1]:
            return KNOWN if known[0] == body else USED
        self.executed[key] = self.executed.get(key, 0) + 1
        if until > now:
            self._known[key] = body, until
        return DONE

    def finds(self, key: str) -> bool:
        """Returns whether a call with this key was executed, however long ago."""
        return key in self.executed

    def snapshot(self) -> tuple[Any, ...]:
        """Returns the whole state, for `restore`."""
        return self.executed.copy(), self._known.copy()

    def restore(self, snapshot: tuple[Any, ...]) -> None:
        """Restores the state of a snapshot."""
        self.executed, self._known = snapshot[0].copy(), snapshot[1].copy()

    def key(self) -> Hashable:
        """Returns a value that identifies this state."""
        return frozenset(self.executed.items()), frozenset(self._known.items())
