"""Spans of time as people say them."""

from datetime import datetime, timedelta
from typing import Final

_UNITS: Final = (("d", 86_400), ("h", 3_600), ("m", 60), ("s", 1))


def span(delta: timedelta) -> str:
    """Returns a span's two largest units, rounded down: `41s`, `5m 3s`, `2d 4h`."""
    left = max(int(delta.total_seconds()), 0)
    parts: list[str] = []
    for unit, seconds in _UNITS:
        count, left = divmod(left, seconds)
        if count:
            parts.append(f"{count}{unit}")
        elif parts:
            break  # `2d 5s` would say more than anybody asks
    return " ".join(parts[:2]) or "0s"


def relative(moment: datetime, now: datetime) -> str:
    """Returns `in 12s` or `41s ago`."""
    return f"in {span(moment - now)}" if moment > now else f"{span(now - moment)} ago"


def spelled(moment: datetime) -> str:
    """Returns a UTC time in ISO 8601, to the second."""
    return moment.isoformat(timespec="seconds").replace("+00:00", "Z")
