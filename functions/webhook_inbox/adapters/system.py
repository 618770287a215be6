"""The clock, randomness and threads of the process."""

import os
import random
import time
from collections.abc import Callable, Iterable
from contextvars import copy_context
from datetime import UTC, datetime
from threading import Condition, Thread

from webhook_inbox.domain.errors import HandlerTimedOut
from webhook_inbox.domain.ports import R, T


class SystemClock:
    """The port `Clock`."""

    def now(self) -> datetime:
        """See the port."""
        return datetime.now(UTC)

    def sleep(self, seconds: float) -> None:
        """See the port."""
        time.sleep(seconds)


class SystemRandomness:
    """The port `Randomness`, cryptographically secure."""

    def __init__(self) -> None:
        self._random = random.SystemRandom()

    def token(self) -> str:
        """See the port."""
        return os.urandom(16).hex()

    def uniform(self, low: float, high: float) -> float:
        """See the port."""
        return self._random.uniform(low, high)


class ThreadExecutor:
    """Runs a handler in a thread of its own while the caller waits.

    Python cannot end a thread. One that is still running after its time-out is abandoned, and
    `alive` is True: the process has to end before it takes another run, or the handler would
    continue without its lease.

    Runs of one process at the same time begin with `begin`. A handler that does not stop keeps its
    lease until the other runs have ended: the process ends right after its settlement, and would
    end them too.
    """

    def __init__(self) -> None:
        self._abandoned: list[Thread] = []
        self._changed = Condition()
        self._open = 0
        self._overdue = 0
        self._until = 0.0

    def begin(self, runs: int, *, seconds: float) -> None:
        """Starts so many runs; after `seconds` none waits for another one any more."""
        with self._changed:
            self._open, self._overdue = runs, 0
            self._until = time.monotonic() + seconds

    def ended(self) -> None:
        """Says that one of them is settled."""
        with self._changed:
            self._open -= 1
            self._changed.notify_all()

    @property
    def alive(self) -> bool:
        """True while a handler that has timed out is still running."""
        return any(thread.is_alive() for thread in self._abandoned)

    def run(self, work: Callable[[], None], *, seconds: float) -> None:
        """See the port; raises whatever the handler raises, SystemExit and others included."""
        if seconds <= 0:
            raise HandlerTimedOut("no time was left to begin")
        raised: list[BaseException] = []

        def guarded() -> None:
            try:
                work()
            except BaseException as error:  # noqa: BLE001 - re-raised in the calling thread
                raised.append(error)

        # The logger's keys are contextvars, which a new thread does not inherit.
        thread = Thread(target=copy_context().run, args=(guarded,), name="handler", daemon=True)
        thread.start()
        thread.join(seconds)
        if thread.is_alive():
            self._await_others()
            self._abandoned.append(thread)
            raise HandlerTimedOut(f"still running after {seconds:g} s")
        if raised:
            # Popped, so that the traceback's frame does not reference the error.
            raise raised.pop()

    def _await_others(self) -> None:
        """Waits until each of the other runs is settled or overdue as well."""
        with self._changed:
            self._overdue += 1
            self._changed.notify_all()
            left = max(self._until - time.monotonic(), 0.0)
            self._changed.wait_for(lambda: self._overdue >= self._open, timeout=left)


class ThreadParallel:
    """The port `Parallel`, in a bounded number of threads that are kept.

    It lives as long as the process: its threads end with it.
    """

    def __init__(self, threads: int) -> None:
        from concurrent.futures import ThreadPoolExecutor  # noqa: PLC0415 - ingest must not load it

        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="parallel")

    def map(self, work: Callable[[T], R], subjects: Iterable[T]) -> list[R]:
        """See the port; an error is raised after all have ended."""
        running = [self._pool.submit(work, subject) for subject in subjects]
        for each in running:
            each.exception()  # waits for its end
        return [each.result() for each in running]
