"""Reads the circuits and the rate limits of all destinations, as the workers left them."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from webhook_inbox.destinations.circuit import Phase, breaker_key, circuit_from, limit_key
from webhook_inbox.destinations.rate_limiter import RESERVATION, microseconds
from webhook_inbox.domain.manifest import DestinationSpec
from webhook_inbox.domain.ports import Table
from webhook_inbox.domain.timestamps import to_ms
from webhook_inbox.ledger.schema import live

# A worker reserves the slots of less than a second at once; a shorter wait is no queue.
SHORTEST_QUEUE: Final = timedelta(seconds=1)
MICROSECOND: Final = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True)
class DestinationState:
    """The state of one destination.

    `is_open` is False for one without a breaker; `queue` is how long a new run waits at its rate.
    """

    name: str
    is_open: bool
    queue: timedelta


def destination_states(
    table: Table, specs: Iterable[DestinationSpec], *, now: datetime
) -> list[DestinationState]:
    """Returns the state of each destination; reads two rows for each.

    Raises:
        Unavailable: the table failed.
    """
    specs = list(specs)
    keys = [key for spec in specs for key in (breaker_key(spec.name), limit_key(spec.name))]
    rows = {(row["pk"], row["sk"]): live(row, now) for row in table.get_many(keys)}
    states: list[DestinationState] = []
    for spec in specs:
        circuit = circuit_from(rows.get(breaker_key(spec.name)))
        is_open = spec.breaker is not None and circuit.phase(to_ms(now)) is not Phase.CLOSED
        limit = rows.get(limit_key(spec.name)) or {}
        ahead = (limit.get(RESERVATION, 0) - microseconds(now)) * MICROSECOND
        queue = ahead if ahead >= SHORTEST_QUEUE else timedelta(0)
        states.append(DestinationState(spec.name, is_open, queue))
    return states
