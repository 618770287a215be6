"""Laid beside the reconciler's entry point in tests: a clock that shows a chosen minute.

The reconciler does some things every fifth minute and others once an hour, to events that are
minutes old; no test can wait for that.
"""

import os
from datetime import datetime, timedelta

from webhook_inbox.adapters.system import SystemClock

# The reconciler leaves events alone that are younger than three minutes. Three more are for a
# slow machine: that long may an event be younger than this clock.
AHEAD = timedelta(minutes=6)
MINUTE = timedelta(minutes=1)
MOMENT = timedelta(microseconds=1)


class ShiftedClock(SystemClock):
    """Is at least six minutes ahead, in one of the minutes that CLOCK_MINUTES lists.

    When that minute is over it stands still: the pass that reads it may be a while in coming.
    """

    def __init__(self) -> None:
        wanted = {int(minute) for minute in os.environ.get("CLOCK_MINUTES", "0,30").split(",")}
        moment = super().now()
        self._shift = AHEAD
        while (moment + self._shift).minute not in wanted:
            self._shift += MINUTE
        self._last = (moment + self._shift).replace(second=0, microsecond=0) + MINUTE - MOMENT

    def now(self) -> datetime:
        """Returns the shifted time."""
        return min(super().now() + self._shift, self._last)
