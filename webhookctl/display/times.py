"""Times as operators write and read them."""

import re
from datetime import UTC, datetime, timedelta
from typing import Final

import typer

_AGO: Final = re.compile(r"([1-9][0-9]{0,5})([smhd])", re.ASCII)
_UNITS: Final = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}


def moment(text: str, now: datetime) -> datetime:
    """Returns the time that `2h` (ago) or an ISO 8601 time say; a naive one is UTC.

    Raises:
        BadParameter: it is neither.
    """
    ago = _AGO.fullmatch(text)
    try:
        if ago is not None:
            return now - timedelta(**{_UNITS[ago[2]]: int(ago[1])})
        parsed = datetime.fromisoformat(text)
    except (ValueError, OverflowError) as error:
        raise typer.BadParameter(
            f"{text!r} is no time: write a span like 30m, 2h or 7d, or 2026-11-21T08:00:00Z"
        ) from error
    return parsed.replace(tzinfo=UTC) if parsed.tzinfo is None else parsed.astimezone(UTC)


def iso(value: datetime | None) -> str | None:
    """Returns a UTC time in ISO 8601 to the millisecond, with Z; None for None."""
    if value is None:
        return None
    return value.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
