"""An executor without threads."""

from collections.abc import Callable
from datetime import timedelta

from webhook_inbox.domain.errors import HandlerTimedOut
from webhook_inbox.domain.ports import Clock


class InlineExecutor:
    """Runs the work where it is called.

    With a clock, work that moved it past the limit has timed out: what it did is done, what it
    returned or raised is not heard of. That is how a simulated handler is slow.
    """

    alive = False  # no thread outlives a call, since there is none

    def __init__(self, clock: Clock | None = None) -> None:
        self._clock = clock

    def run(self, work: Callable[[], None], *, seconds: float) -> None:
        """See the port."""
        if self._clock is None:
            work()
            return
        end = self._clock.now() + timedelta(seconds=seconds)
        try:
            work()
        finally:
            if self._clock.now() > end:
                raise HandlerTimedOut(f"still running after {seconds:g} s")
