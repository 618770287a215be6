"""Opens and closes a circuit by hand.

    closed, open, recovering ──► open by hand ──► closed

A circuit that a person opened has no recovery: no run probes it, and no outcome of a call that was
in flight changes it. Its runs wait as for any open circuit and look again every `RECHECK`.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from webhook_inbox.destinations.circuit import HELD_UNTIL, breaker_key, expiry
from webhook_inbox.domain.audit import Actor, AuditedAction
from webhook_inbox.domain.conditions import Absent, Present
from webhook_inbox.domain.errors import ConditionFailed
from webhook_inbox.domain.ports import Change, Item, Randomness, Table
from webhook_inbox.domain.timestamps import to_ms, to_seconds
from webhook_inbox.ledger import audit
from webhook_inbox.ledger.schema import transition

# The row of a circuit that a person opened must not expire before the person closes it.
HELD_LIFE: Final = timedelta(days=3650)
_HELD: Final = ("held_since", "held_by", "held_reason")


@dataclass(frozen=True, slots=True)
class CircuitRequest:
    """A request to open or close a circuit."""

    destination: str
    by: Actor
    reason: str
    now: datetime


def open_circuit(table: Table, randomness: Randomness, request: CircuitRequest) -> Item | None:
    """Opens a circuit; returns its row where a person had opened it already, None otherwise.

    Raises:
        Unavailable: the table failed; it may be open.
    """
    recorded = _audit(table, randomness, AuditedAction.OPEN_CIRCUIT, request)
    change = Change(
        set={
            "open_until": HELD_UNTIL,
            "held_since": to_ms(request.now),
            "held_by": str(request.by),
            "held_reason": request.reason,
            "expires_at": to_seconds(request.now + HELD_LIFE),
        },
        # Without its lease, a probe in flight cannot close the circuit.
        remove=("probe", "probe_until"),
    )
    try:
        transition(table, breaker_key(request.destination), change, when=Absent("held_since"))
    except ConditionFailed as error:
        recorded.conclude({"unchanged": 1})
        return error.old
    recorded.conclude({"opened": 1})
    return None


def close_circuit(table: Table, randomness: Randomness, request: CircuitRequest) -> bool:
    """Closes a circuit, also one that failures opened; returns False if it was closed.

    Raises:
        Unavailable: the table failed; it may be closed.
    """
    recorded = _audit(table, randomness, AuditedAction.CLOSE_CIRCUIT, request)
    change = Change(
        set={"failures": 0, **expiry(request.now)},
        remove=("open_until", "probe", "probe_until", *_HELD),
    )
    try:
        table.update(breaker_key(request.destination), change, when=Present("open_until"))
    except ConditionFailed:
        recorded.conclude({"unchanged": 1})
        return False
    recorded.conclude({"closed": 1})
    return True


def _audit(
    table: Table, randomness: Randomness, action: AuditedAction, request: CircuitRequest
) -> audit.AuditRecord:
    return audit.record(
        table,
        randomness,
        action=action,
        by=request.by,
        reason=request.reason,
        request={"destination": request.destination},
        now=request.now,
    )
