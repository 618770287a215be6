"""The circuit of a destination: the outcomes of calls that change it, and its row."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, Final

from webhook_inbox.domain.ports import Key
from webhook_inbox.domain.timestamps import to_seconds


class Health(StrEnum):
    """The health of a destination, as one response shows it."""

    OK = "ok"  # it answered; the request itself may be wrong
    FAILED = "failed"  # no response, or a server error
    LIMITED = "limited"  # it was called too often


@dataclass(frozen=True, slots=True)
class CallOutcome:
    """The outcome of a call; `retry_after` is the pause that the destination requested."""

    kind: Health
    retry_after: timedelta | None = None

    @classmethod
    def ok(cls) -> "CallOutcome":
        """Returns the outcome at a destination that works."""
        return cls(Health.OK)

    @classmethod
    def failed(cls, retry_after: timedelta | None = None) -> "CallOutcome":
        """Returns the outcome at a destination that does not work."""
        return cls(Health.FAILED, retry_after)

    @classmethod
    def limited(cls, retry_after: timedelta | None = None) -> "CallOutcome":
        """Returns the outcome at a destination that is called too often."""
        return cls(Health.LIMITED, retry_after)


# The rows of a destination expire this long after their last write: far longer than any circuit
# is open or any run waits.
LIFE: Final = timedelta(days=35)
# The `open_until` of a circuit that a person opened: it is never probed.
HELD_UNTIL: Final = 10**14


class Phase(StrEnum):
    """The phase of a circuit."""

    CLOSED = "closed"  # all runs may call
    OPEN = "open"  # no run may call
    RECOVERING = "recovering"  # one run may call, the probe


@dataclass(frozen=True, slots=True)
class Circuit:
    """The circuit of a destination; times in epoch milliseconds, 0 for never.

    Attributes:
        failures: the calls that failed since the last success.
        open_until: when one run may probe; 0 while the circuit is closed.
        probe: the lease of the run that probes, "" for none.
        probe_until: when the lease of the probe expires, and another run may probe.
        paused_until: when the pause after the last 429 ends, or ended.
        held_since: when a person opened it; 0 if it is not open by hand.
    """

    failures: int = 0
    open_until: int = 0
    probe: str = ""
    probe_until: int = 0
    paused_until: int = 0
    held_since: int = 0

    def phase(self, now: int) -> Phase:
        """Returns the phase at this time."""
        if not self.open_until:
            return Phase.CLOSED
        return Phase.OPEN if now < self.open_until else Phase.RECOVERING


UNKNOWN: Final = Circuit()


def circuit_from(row: Mapping[str, Any] | None) -> Circuit:
    """Reads the row of a circuit; without a row, the circuit is closed."""
    known = {each.name for each in fields(Circuit)}
    return Circuit(**{name: value for name, value in (row or {}).items() if name in known})


def breaker_key(destination: str) -> Key:
    """Returns the key of the row that holds the circuit of a destination."""
    return Key(f"destination#{destination}", "breaker")


def limit_key(destination: str) -> Key:
    """Returns the key of the row that holds the rate limit of a destination."""
    return Key(f"destination#{destination}", "limit")


def expiry(now: datetime) -> dict[str, int]:
    """Returns the TTL attribute of a row."""
    return {"expires_at": to_seconds(now + LIFE)}
