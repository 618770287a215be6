"""Conversions of times, and durations as in inbox.toml."""

import re
from datetime import UTC, datetime, timedelta
from typing import Final

from webhook_inbox.domain.errors import ConfigurationError

EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
MILLISECOND: Final = timedelta(milliseconds=1)


def to_ms(moment: datetime) -> int:
    """Returns epoch milliseconds, rounded down."""
    return (moment - EPOCH) // MILLISECOND


def from_ms(value: int) -> datetime:
    """Returns the aware UTC time of epoch milliseconds."""
    return EPOCH + value * MILLISECOND


def to_seconds(moment: datetime) -> int:
    """Returns epoch seconds, rounded up, so that nothing expires early."""
    return -(-to_ms(moment) // 1000)


def from_seconds(value: int) -> datetime:
    """Returns the aware UTC time of epoch seconds."""
    return EPOCH + timedelta(seconds=value)


_SPELLING: Final = re.compile(r"([1-9][0-9]{0,5})([smh])", re.ASCII)
_UNITS: Final = {"s": "seconds", "m": "minutes", "h": "hours"}


def duration(text: str) -> timedelta:
    """Reads `30s`, `5m` or `1h`; raises ConfigurationError for any other text."""
    match = _SPELLING.fullmatch(text)
    if match is None:
        raise ConfigurationError(f'"{text}" is not a duration; write it like "30s", "5m" or "1h"')
    return timedelta(**{_UNITS[match[2]]: int(match[1])})


_DAYS: Final = re.compile(r"([1-9][0-9]{0,4})d", re.ASCII)


def span(text: str) -> timedelta:
    """Reads `2d` as well as what `duration` reads; raises ConfigurationError."""
    match = _DAYS.fullmatch(text)
    return timedelta(days=int(match[1])) if match else duration(text)
