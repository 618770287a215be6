"""Follows the events that arrive.

The index is eventually consistent and its clocks differ, so each poll reads the time before the
newest event again; what it has returned before is known by its key.
"""

from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any, Final

from webhook_inbox.domain.ports import Clock, Table
from webhook_inbox.domain.timestamps import from_ms, to_ms
from webhook_inbox.ledger.queries import Ledger, Received

# The seconds that a poll reads again. The index follows its table within one, as a rule.
OVERLAP: Final = timedelta(seconds=30)
# Without events, the reading begins this long before the time of this machine, whose clock may be
# wrong.
CLOCK_ERROR: Final = timedelta(minutes=10)

# Source, event id and time of receipt, in ms.
Seen = tuple[str, str, int]


class Arrivals:
    """Yields each event once, in the order of arrival as far as the index has it.

    Its memory grows with the events of `OVERLAP` and no further.

    Attributes:
        newest: when the newest event was received that was yielded; the beginning without one.
    """

    def __init__(
        self, table: Table, clock: Clock, *, since: datetime, seen: frozenset[Seen] = frozenset()
    ) -> None:
        self._table = table
        self._clock = clock
        self._since = since
        self._seen = set(seen)
        self.newest = since

    def poll(self) -> Iterator[Received]:
        """Yields the events that arrived since the last poll, oldest first.

        After an error, the next poll continues behind the last event.

        Raises:
            Unavailable: the ledger failed.
        """
        now = self._clock.now()
        low = max(self.newest - OVERLAP, self._since)
        for event in Ledger(table=self._table).received(low, now + CLOCK_ERROR):
            key = (event.source, event.event_id, to_ms(event.received_at))
            if key not in self._seen:
                # Known once it was handled: an error while it is handled repeats it.
                yield event
                self._seen.add(key)
                self.newest = max(self.newest, event.received_at)
        self.newest = max(self.newest, now - CLOCK_ERROR)
        self._forget()

    def state(self) -> dict[str, Any]:
        """Returns the place as JSON data, for `resumed`."""
        return {"newest": to_ms(self.newest), "seen": sorted(self._seen)}

    @classmethod
    def resumed(cls, table: Table, clock: Clock, state: Mapping[str, Any]) -> "Arrivals":
        """Continues at a place that `state` returned; raises KeyError, TypeError or ValueError."""
        newest = from_ms(int(state["newest"]))
        seen = frozenset((str(s), str(e), int(at)) for s, e, at in state["seen"])
        made = cls(table, clock, since=newest - OVERLAP, seen=seen)
        made.newest = newest
        return made

    def _forget(self) -> None:
        low = to_ms(self.newest - OVERLAP)
        self._seen = {key for key in self._seen if key[2] >= low}
