"""Values of a delivery as an event's id, type, time and count."""

import re
from datetime import UTC, datetime
from typing import Final

from webhook_inbox.domain.errors import Reason, Rejected
from webhook_inbox.domain.timestamps import from_ms, from_seconds

UNKNOWN: Final = "unknown"
TYPE_LIMIT: Final = 256
COUNT_DIGITS: Final = 9
LARGEST: Final = 10**100
# Epoch seconds beyond the year 5138 are milliseconds.
LAST_SECOND: Final = 10**11

# Epoch seconds or milliseconds as text; no date of ISO 8601 has as many digits in a row.
_EPOCH: Final = re.compile(r"[0-9]{10}([0-9]{3})?", re.ASCII)
# Control characters corrupt logs and terminals; stores reject lone surrogates, which JSON allows.
_UNFIT: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff]")


def event_id(value: object) -> str:
    """Returns the id as text; raises Rejected (malformed) if it cannot be an id.

    A float is rejected because two floats can have the same text.
    """
    if isinstance(value, int) and not isinstance(value, bool):
        value = str(value)
    if not isinstance(value, str) or not value.strip() or _UNFIT.search(value):
        raise Rejected(Reason.MALFORMED, "the event id is neither plain text nor a whole number")
    return value


def event_type(value: object) -> str:
    """Returns the type as text; `unknown` if there is none, so that no event is lost."""
    return plain(value)[:TYPE_LIMIT] or UNKNOWN


def count(value: object) -> int | None:
    """Returns a small number, or None."""
    text = plain(value)
    return int(text) if text.isascii() and text.isdecimal() and len(text) < COUNT_DIGITS else None


def plain(value: object) -> str:
    """Returns text that can be stored and printed, else ""."""
    if isinstance(value, int) and not isinstance(value, bool):
        value = _decimal(value)
    if not isinstance(value, str) or not value.strip() or _UNFIT.search(value):
        return ""
    return value


def _decimal(value: int) -> str:
    # str() raises for numbers of more than 4,300 digits.
    return str(value) if abs(value) < LARGEST else ""


def instant(value: object) -> datetime | None:
    """Returns the time from epoch seconds, epoch milliseconds or ISO 8601 text, or None."""
    if isinstance(value, str) and _EPOCH.fullmatch(value):
        value = int(value)
    try:
        if isinstance(value, int) and not isinstance(value, bool):
            return from_ms(value) if abs(value) > LAST_SECOND else from_seconds(value)
        if isinstance(value, str):
            moment = datetime.fromisoformat(value)
            return None if moment.tzinfo is None else moment.astimezone(UTC)
    except (ValueError, OverflowError):
        return None
    return None
