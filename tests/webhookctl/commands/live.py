"""A clock of commands that run until they are interrupted: what happens while they wait."""

from collections.abc import Callable, Iterable
from datetime import datetime

from tests.webhookctl.commands.stage import Inbox


class Waits:
    """The inbox's clock, whose every sleep does the next step, and whose last one is Ctrl-C."""

    def __init__(self, inbox: Inbox, steps: Iterable[Callable[[], object]]) -> None:
        self._clock = inbox.clock
        self._steps = list(steps)
        self.slept: list[float] = []

    def now(self) -> datetime:
        return self._clock.now()

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self._clock.advance(seconds=seconds)
        if not self._steps:
            raise KeyboardInterrupt
        self._steps.pop(0)()
