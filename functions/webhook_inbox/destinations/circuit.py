"""How a destination answered a call, as far as sparing it goes."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, Final

from webhook_inbox.domain.ports import Key
from webhook_inbox.domain.timestamps import to_seconds


class Health(StrEnum):
    """What an answer says of the destination's health."""

    OK = "ok"  # it answered, whatever it thinks of the request
    FAILED = "failed"  # it did not answer, or with an error of its own
    LIMITED = "limited"  # it wants to be called less often


@dataclass(frozen=True, slots=True)
class CallOutcome:
    """How a call ended; `retry_after` is what a destination that is limited asked for."""

    kind: Health
    retry_after: timedelta | None = None

    @classmethod
    def ok(cls) -> "CallOutcome":
        """Returns the answer of a destination that works."""
        return cls(Health.OK)

    @classmethod
    def failed(cls) -> "CallOutcome":
        """Returns the answer of one that does not."""
        return cls(Health.FAILED)

    @classmethod
    def limited(cls, retry_after: timedelta | None = None) -> "CallOutcome":
        """Returns the answer of one that is called too often."""
        return cls(Health.LIMITED, retry_after)


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
