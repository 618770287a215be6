"""Laid beside the reconciler's entry point in tests: a clock that shows a chosen minute.

The reconciler does some things every fifth minute and others once an hour, to events that are
minutes old; no test can wait for that.
"""

import os
from datetime import datetime, timedelta

from webhook_inbox.adapters.clock import SystemClock

# The reconciler leaves events alone that are younger than three minutes.
AHEAD = timedelta(minutes=4)
MINUTE = timedelta(minutes=1)


class ShiftedClock(SystemClock):
    """Is at least four minutes ahead, at one of the minutes that CLOCK_MINUTES lists."""

    def __init__(self) -> None:
        wanted = {int(minute) for minute in os.environ.get("CLOCK_MINUTES", "0,30").split(",")}
        moment = super().now()
        self._shift = AHEAD
        while (moment + self._shift).minute not in wanted:
            self._shift += MINUTE

    def now(self) -> datetime:
        """Returns the shifted time."""
        return super().now() + self._shift
