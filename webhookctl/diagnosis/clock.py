"""How far the signed time lies from ours, and where it stands."""

import re
from binascii import Error, a2b_base64
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Final

from webhook_inbox.domain.timestamps import from_ms
from webhookctl.diagnosis.hypothesis import Cause, Trial
from webhookctl.display.times import span

# Where a time may stand, wherever the scheme looks for it.
MOMENT: Final = re.compile(rb"[0-9]{13}|[0-9]{10}|[0-9]{4}-[0-9-]{5}[Tt][0-9:.]{8,}[Zz+-][0-9:]*")
# A clock that is set to local time is off by half hours.
ZONE: Final = timedelta(minutes=30)
REMEDY: Final = (
    "give the time at which it came with --at; if that was it, set the clock, or have it sent anew"
)


def skewed(age: timedelta) -> Cause:
    """Returns the cause that it was signed so long before it came."""
    side = "before" if age > timedelta(0) else "after"
    words = f"it was signed {span(abs(age))} {side} it came, by the clock here"
    nearest = round(abs(age) / ZONE) * ZONE
    if nearest and abs(abs(age) - nearest) < timedelta(minutes=2):
        words += f": {span(nearest)} is what a clock is off that is set to another time zone"
    return Cause("clock-skew", words, REMEDY)


def moments(trial: Trial) -> Iterator[datetime]:
    """Yields what may be the signed time."""
    values = [value.encode(errors="replace") for value in trial.delivery.headers.values()]
    values += [_claims(value) for value in values]
    for value in (*values, trial.delivery.body):
        for found in MOMENT.findall(value):
            try:
                yield _moment(found.decode())
            except (ValueError, OverflowError):
                continue


def _moment(text: str) -> datetime:
    if text.isdecimal():
        return from_ms(int(text) if len(text) > 10 else int(text) * 1000)
    return datetime.fromisoformat(text.upper()).astimezone(UTC)


def _claims(value: bytes) -> bytes:
    """Returns what a JWT claims, b"" of anything else."""
    parts = value.split(b".")
    try:
        return a2b_base64(parts[1] + b"==", strict_mode=False) if len(parts) == 3 else b""
    except Error:
        return b""
