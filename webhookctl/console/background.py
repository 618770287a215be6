"""A value that takes long to read: a thread reads it again while pages show the last one."""

from collections.abc import Callable
from threading import Event, Lock, Thread
from time import monotonic
from typing import Final, Generic, TypeVar

from webhookctl.errors import explain

T = TypeVar("T")
# The seconds for which a page waits for the first value.
WAIT: Final = 0.5


class BackgroundCached(Generic[T]):
    """A value that is read at most once in a period, however many pages ask for it.

    Args:
        read: reads it.
        seconds: the period, which also follows an error.

    Attributes:
        error: why the last reading failed, "" unless it did.
    """

    def __init__(self, read: Callable[[], T], *, seconds: float) -> None:
        self._read = read
        self._seconds = seconds
        self._lock = Lock()
        self._next = 0.0
        self._known = Event()
        self._forgotten = 0
        self._value: T | None = None
        self.error = ""

    def __call__(self) -> T | None:
        """Returns the last value, None before there is one."""
        with self._lock:
            due = monotonic() >= self._next
            if due:
                self._next = monotonic() + self._seconds
        if due:
            Thread(target=self._refresh, args=(self._forgotten,), daemon=True).start()
        self._known.wait(WAIT)
        return self._value

    def forget(self) -> None:
        """Reads again at the next call: an action has changed the value."""
        self._forgotten += 1
        self._value = None
        self._known.clear()
        self._next = 0.0

    def _refresh(self, forgotten: int) -> None:
        value, error = self._value, ""
        try:
            value = self._read()
        except Exception as raised:  # noqa: BLE001 - the page shows it
            error = explain(raised)
        # A reading that an action overtook may be of the state before the action.
        if forgotten == self._forgotten:
            self._value, self.error = value, error
            self._known.set()
