"""Polls until it is interrupted, and says on standard error whether its result is current."""

from collections.abc import Callable
from datetime import datetime
from typing import Final

import typer

from webhook_inbox.client.tail import PAUSE
from webhook_inbox.client.times import spelled
from webhook_inbox.domain.errors import Unavailable
from webhook_inbox.domain.ports import Clock
from webhookctl.display.output import Output
from webhookctl.errors import explain

# The exit status of a command that the user interrupted.
INTERRUPTED: Final = 130


class Connection:
    """Polls every 2 seconds; after an outage it continues where it was.

    Says `connecting`, `live`, and `stale since` with the reason, each when it changes.
    """

    def __init__(self, output: Output, clock: Clock, *, to: str) -> None:
        self._output = output
        self._clock = clock
        self._to = to
        self._current_at: datetime | None = None
        self._stale = False

    def follow(self, poll: Callable[[], None], *, live: Callable[[], str]) -> None:
        """Polls until an interrupt; exits with 130.

        Args:
            poll: reads once and shows the result.
            live: returns what to say after the first poll.

        Raises:
            Unavailable: the first poll failed; later ones are repeated.
        """
        self._output.note(f"Connecting to {self._to}.")
        try:
            while True:
                self._once(poll, live)
                self._clock.sleep(PAUSE)
        except KeyboardInterrupt as stopped:
            raise typer.Exit(INTERRUPTED) from stopped

    def _once(self, poll: Callable[[], None], live: Callable[[], str]) -> None:
        try:
            poll()
        except Unavailable as error:
            if self._current_at is None:
                raise
            if not self._stale:
                since = spelled(self._current_at)
                self._output.note(f"Stale since {since}: {explain(error)}. Trying again.")
            self._stale = True
            return
        first, self._current_at = self._current_at is None, self._clock.now()
        if first:
            self._output.note(f"Live. {live()}")
        elif self._stale:
            self._output.note("Live again; nothing was left out.")
        self._stale = False
