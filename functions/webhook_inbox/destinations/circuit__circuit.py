"""A destination's circuit, and the row that all workers share of it.

    closed ── so many failures in a row ──► open ── recovery is over ──► recovering
      ▲                                      ▲                              │ one run probes
      └──────────── the probe succeeds ──────┼──────────────────────────────┤
                                             └──── the probe fails ─────────┘

Beside it the row keeps until when the destination is paused after a 429.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, Final

from webhook_inbox.domain.ports import Key
from webhook_inbox.domain.timestamps__instants import to_seconds

# Far longer than any circuit is open and any run is kept waiting; a destination that nobody
# calls any more vanishes after it.
LIFE: Final = timedelta(days=35)


class Phase(StrEnum):
    """Who may call."""

    CLOSED = "closed"  # everybody
    OPEN = "open"  # nobody
    RECOVERING = "recovering"  # one run, the probe


@dataclass(frozen=True, slots=True)
class Circuit:
    """What is known of a destination's health; times in epoch milliseconds, 0 for never.

    Attributes:
        failures: how many calls failed since the last one that did not.
        open_until: when one run may probe; 0 while the circuit is closed.
        probe: the lease of the run that probes, "" for none.
        probe_until: when another run may probe in its stead.
        paused_until: when the pause ends, or ended, that a 429 began.
    """

    failures: int = 0
    open_until: int = 0
    probe: str = ""
    probe_until: int = 0
    paused_until: int = 0

    def phase(self, now: int) -> Phase:
        """Returns who may call at this time."""
        if not self.open_until:
            return Phase.CLOSED
        return Phase.OPEN if now < self.open_until else Phase.RECOVERING


UNKNOWN: Final = Circuit()


def circuit_from(row: Mapping[str, Any] | None) -> Circuit:
    """Reads a destination's breaker row; without one its circuit is closed."""
    if row is None:
        return UNKNOWN
    return Circuit(
        failures=row.get("failures", 0),
        open_until=row.get("open_until", 0),
        probe=row.get("probe", ""),
        probe_until=row.get("probe_until", 0),
        paused_until=row.get("paused_until", 0),
    )


def breaker_key(destination: str) -> Key:
    """Returns the key of the row that holds a destination's circuit."""
    return Key(f"destination#{destination}", "breaker")


def limit_key(destination: str) -> Key:
    """Returns the key of the row that holds a destination's timelines."""
    return Key(f"destination#{destination}", "limit")


def expiry(now: datetime) -> dict[str, int]:
    """Returns the attribute by which DynamoDB deletes a row that nobody writes any more."""
    return {"expires_at": to_seconds(now + LIFE)}
