"""The audit: a row for every operator action, written before the action."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Final

from webhook_inbox.domain.ports import Randomness, Table
from webhook_inbox.domain.timestamps import to_ms, to_seconds
from webhook_inbox.ledger.schema import EVENT_LIFE

EVENTS_NAMED: Final = 100
# An audit row outlives the rows that the action was about.
AUDIT_LIFE: Final = 2 * EVENT_LIFE


def record(
    table: Table,
    randomness: Randomness,
    *,
    action: str,
    by: str,
    reason: str,
    request: Mapping[str, str],
    event_ids: Sequence[str] = (),
    now: datetime,
) -> None:
    """Writes one row.

    Raises:
        Unavailable: the table failed; the caller must not perform the action.
    """
    table.put(
        {
            "pk": f"audit#{now:%Y-%m-%d}",
            "sk": f"{to_ms(now):013d}#{randomness.token()}",
            "action": action,
            "by": by,
            "reason": reason,
            "request": dict(request),
            "event_ids": list(event_ids[:EVENTS_NAMED]),
            "expires_at": to_seconds(now + AUDIT_LIFE),
        }
    )
