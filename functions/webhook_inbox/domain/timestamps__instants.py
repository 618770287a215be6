"""Times as the ledger keeps them: whole epoch milliseconds, whole epoch seconds for TTL."""

from datetime import UTC, datetime, timedelta
from typing import Final

EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
MILLISECOND: Final = timedelta(milliseconds=1)


def to_ms(moment: datetime) -> int:
    """Returns epoch milliseconds, rounded down."""
    return (moment - EPOCH) // MILLISECOND


def from_ms(value: int) -> datetime:
    """Returns the aware UTC time of epoch milliseconds."""
    return EPOCH + value * MILLISECOND


def to_seconds(moment: datetime) -> int:
    """Returns epoch seconds, rounded up: what expires at it has really expired."""
    return -(-to_ms(moment) // 1000)


def from_seconds(value: int) -> datetime:
    """Returns the aware UTC time of epoch seconds."""
    return EPOCH + timedelta(seconds=value)
