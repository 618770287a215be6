"""A value that is read again now and then, by programs that run for hours."""

from collections.abc import Callable
from threading import Lock
from time import monotonic
from typing import Generic, TypeVar

T = TypeVar("T")


class Cached(Generic[T]):
    """A value that is read at most once in a period, however many pages ask for it.

    Args:
        read: reads it; an error is passed on, and nothing is kept.
        seconds: the period.
    """

    def __init__(self, read: Callable[[], T], *, seconds: float) -> None:
        self._read = read
        self._seconds = seconds
        self._lock = Lock()
        self._until = 0.0
        self._forgotten = 0
        self._value: T | None = None

    def __call__(self) -> T:
        """Returns the value, at most `seconds` old."""
        with self._lock:
            if self._value is None or monotonic() >= self._until:
                forgotten = self._forgotten
                self._value = self._read()
                # A read that an action overlaps may return the state before the action.
                current = forgotten == self._forgotten
                self._until = monotonic() + self._seconds if current else 0.0
            return self._value

    def forget(self) -> None:
        """Reads again at the next call: an action has changed the value."""
        self._forgotten += 1
        self._until = 0.0
