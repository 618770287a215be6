"""When a destination wants to be asked again.

`Retry-After` is a number of seconds or an HTTP date, of which there are three formats (RFC 9110,
5.6.7 and 10.2.3). Azure and OpenAI say milliseconds in a header of their own. HubSpot counts
`Retry-After` itself in milliseconds: so it reads the answers of others
(https://knowledge.hubspot.com/workflows/how-do-i-use-webhooks-with-hubspot-workflows), which a
destination written for it therefore gives. Its own API tells the window of its limit beside it
(https://developers.hubspot.com/docs/developer-tooling/platform/usage-guidelines).
"""

import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Final

# Nobody who asks for more is taken at their word.
LIMIT: Final = timedelta(hours=24)
MILLISECONDS: Final = ("retry-after-ms", "x-ms-retry-after-ms")
# How long the window of HubSpot's limit is: after a 429 it is over by then.
WINDOW: Final = "x-hubspot-ratelimit-interval-milliseconds"
# HubSpot's windows are 1 s and 10 s. A larger number beside one, read as seconds, would be a
# quarter of an hour; taken for milliseconds wrongly, it costs one more 429.
_SURELY_MILLISECONDS: Final = 1000
_NUMBER: Final = re.compile(r"[0-9]{1,15}(\.[0-9]{1,15})?", re.ASCII)


def retry_after(
    headers: Mapping[str, str], *, unit: str, limited: bool, now: datetime
) -> timedelta | None:
    """Returns the time that a destination wants to be left alone, 0 to 24 h, None for any.

    Args:
        headers: the answer's, by names in lower case.
        unit: what a number counts at this destination, "seconds" or "milliseconds".
        limited: whether the answer is a 429.
        now: the time.
    """
    for name in MILLISECONDS:
        if (number := _number(headers.get(name, ""))) is not None:
            return _span(number / 1000)
    asked = headers.get("retry-after", "")
    number = _number(asked)
    if number is not None:
        hubspot = WINDOW in headers and number >= _SURELY_MILLISECONDS
        return _span(number / 1000 if hubspot or unit == "milliseconds" else number)
    until = _date(asked)
    if until is not None:
        return min(max(until - now, timedelta(0)), LIMIT)
    window = _number(headers.get(WINDOW, "")) if limited else None
    return None if window is None else _span(window / 1000)


def _number(text: str) -> float | None:
    text = text.strip()
    return float(text) if _NUMBER.fullmatch(text) else None


def _span(seconds: float) -> timedelta:
    return timedelta(seconds=min(seconds, LIMIT.total_seconds()))


def _date(text: str) -> datetime | None:
    try:
        moment = parsedate_to_datetime(text)
        # asctime's format names no zone, and always means UTC.
        return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
