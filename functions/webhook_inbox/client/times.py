"""Parses and formats times and durations."""

import re
from datetime import UTC, datetime, timedelta
from typing import Final

from webhook_inbox.client.errors import WrongArgument
from webhook_inbox.ledger.audit import AUDIT_LIFE, DAY

# Audit rows are kept longest.
OLDEST: Final = AUDIT_LIFE + DAY
_AGO: Final = re.compile(r"([1-9][0-9]{0,5})([smhd])", re.ASCII)
_UNITS: Final = {"d": 86_400, "h": 3_600, "m": 60, "s": 1}
_SHOWN: Final = {"d": 86_400, "h": 3_600, "min": 60, "s": 1}


def moment(text: str, now: datetime) -> datetime:
    """Returns the time of `2h` (ago) or of an ISO 8601 time, UTC by default.

    A time before the oldest row of the ledger, or later than tomorrow, is replaced by that bound,
    since a search reads every hour of its window.

    Raises:
        WrongArgument: it is neither.
    """
    ago = _AGO.fullmatch(text)
    try:
        if ago is not None:
            parsed = now - timedelta(seconds=int(ago[1]) * _UNITS[ago[2]])
        else:
            parsed = datetime.fromisoformat(text)
    except (ValueError, OverflowError) as error:
        raise WrongArgument(
            f"{text!r} is not a time: use a duration such as 30m, 2h or 7d, or a time such as"
            " 2026-11-21T08:00:00Z"
        ) from error
    aware = parsed.replace(tzinfo=UTC) if parsed.tzinfo is None else parsed
    return min(max(aware, now - OLDEST), now + DAY).astimezone(UTC)


def iso(value: datetime | None) -> str | None:
    """Returns a UTC time in ISO 8601 to the millisecond; None for None."""
    return None if value is None else _formatted(value, "milliseconds")


def spelled(value: datetime) -> str:
    """Returns a UTC time in ISO 8601 to the second."""
    return _formatted(value, "seconds")


def span(delta: timedelta) -> str:
    """Returns a duration's two largest units, rounded down: `41 s`, `5 min 3 s`, `2 d 4 h`."""
    left = max(int(delta.total_seconds()), 0)
    parts: list[str] = []
    for unit, seconds in _SHOWN.items():
        count, left = divmod(left, seconds)
        if count:
            parts.append(f"{count} {unit}")
        elif parts:
            break  # `2 d 5 s` is too precise
    return " ".join(parts[:2]) or "0 s"


def short_span(delta: timedelta) -> str:
    """Returns a whole duration as an option has it, in its largest unit: `15m`, `1h`."""
    seconds = int(delta.total_seconds())
    unit, size = next(each for each in _UNITS.items() if seconds % each[1] == 0)
    return f"{seconds // size}{unit}"


def relative(value: datetime, now: datetime) -> str:
    """Returns `in 12 s` or `5 min 3 s ago`."""
    return f"in {span(value - now)}" if value > now else f"{span(now - value)} ago"


def brief(value: datetime, now: datetime) -> str:
    """Returns a time for a table, in its largest unit: `in 2 h`, `5 min ago`."""
    count, unit = span(abs(value - now)).split()[:2]
    return f"in {count} {unit}" if value > now else f"{count} {unit} ago"


def _formatted(value: datetime, precision: str) -> str:
    return value.astimezone(UTC).isoformat(timespec=precision).replace("+00:00", "Z")
