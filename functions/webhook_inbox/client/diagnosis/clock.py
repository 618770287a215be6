"""The signed time of a delivery, and its distance from the receiver's clock."""

import re
from binascii import Error, a2b_base64
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Final

from webhook_inbox.client.diagnosis.hypothesis import RejectionCause, Trial
from webhook_inbox.client.times import span
from webhook_inbox.domain.timestamps import from_ms

# A time in any header or body.
MOMENT: Final = re.compile(rb"[0-9]{13}|[0-9]{10}|[0-9]{4}-[0-9-]{5}[Tt][0-9:.]{8,}[Zz+-][0-9:]*")
# A clock set to local time is off by a multiple of this.
ZONE: Final = timedelta(minutes=30)
REMEDY: Final = (
    "pass the time of receipt with --at; if it then verifies, correct the clock or resend"
)


def skewed(age: timedelta) -> RejectionCause:
    """Returns the cause for a signature of this age."""
    side = "before" if age > timedelta(0) else "after"
    words = f"it was signed {span(abs(age))} {side} it was received, by the local clock"
    nearest = round(abs(age) / ZONE) * ZONE
    if nearest and abs(abs(age) - nearest) < timedelta(minutes=2):
        words += f": {span(nearest)} is the error of a clock in another time zone"
    return RejectionCause("clock-skew", words, REMEDY)


def moments(trial: Trial) -> Iterator[datetime]:
    """Yields candidates for the signed time."""
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
    """Returns the claims of a JWT, b"" for any other value."""
    parts = value.split(b".")
    try:
        return a2b_base64(parts[1] + b"==", strict_mode=False) if len(parts) == 3 else b""
    except Error:
        return b""
