"""Handlers under a time limit."""

from collections.abc import Callable
from contextvars import copy_context
from threading import Thread

from webhook_inbox.domain.errors import HandlerTimedOut


class ThreadExecutor:
    """Runs a handler in a thread of its own while the caller waits.

    Python cannot end a thread. One that is still running after its time is abandoned, and
    `alive` tells so: the process has to end before it takes another run, or the handler would
    go on behind the back of its lost lease.
    """

    def __init__(self) -> None:
        self._abandoned: list[Thread] = []

    @property
    def alive(self) -> bool:
        """Whether a handler that has timed out is still running."""
        return any(thread.is_alive() for thread in self._abandoned)

    def run(self, work: Callable[[], None], *, seconds: float) -> None:
        """See the port.

        What the handler raises is raised here as it was, SystemExit and RecursionError included.
        """
        if seconds <= 0:
            raise HandlerTimedOut("no time was left to begin")
        raised: list[BaseException] = []

        def guarded() -> None:
            try:
                work()
            except BaseException as error:  # noqa: BLE001 - handed over to the waiting caller
                raised.append(error)

        # Contextvars carry the log's keys; a new thread begins without them.
        thread = Thread(target=copy_context().run, args=(guarded,), name="handler", daemon=True)
        thread.start()
        thread.join(seconds)
        if thread.is_alive():
            self._abandoned.append(thread)
            raise HandlerTimedOut(f"still running after {seconds:g} s")
        if raised:
            # Popped, so that the traceback's frame does not refer back to the error.
            raise raised.pop()
