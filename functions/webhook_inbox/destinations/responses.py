"""What a destination's answer means: for the run, and for the destination's circuit and limit.

    2xx                           ok
    3xx, other 4xx                permanent: repeating it changes nothing
    401, 403                      permanent, and somebody is woken: every call will fail
    409                           transient under a key: an earlier call under it is still at work
    408, 425, 429, 5xx, silence   transient

Where a call was certainly not carried out, a transient failure is `refused`, and its effect has
failed; otherwise the effect is in doubt. `[destinations.NAME] responses` overrides any status.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from enum import StrEnum
from typing import Final

from webhook_inbox.destinations.circuit import CallOutcome
from webhook_inbox.domain.errors import Permanent, Transient
from webhook_inbox.domain.manifest import DestinationSpec

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


REQUEST_TIMEOUT: Final = 408
CONFLICT: Final = 409
TOO_MANY_REQUESTS: Final = 429
SERVICE_UNAVAILABLE: Final = 503
UNAUTHORIZED: Final = frozenset({401, 403})
WORTH_ANOTHER_TRY: Final = frozenset({REQUEST_TIMEOUT, 425, TOO_MANY_REQUESTS})
# Only these of all 4xx leave open whether the call was carried out.
DOUBTFUL: Final = frozenset({REQUEST_TIMEOUT, CONFLICT})
# A name that cannot be resolved is a mistake in inbox.toml far more often than an outage.
DNS_ATTEMPTS: Final = 3


class Meaning(StrEnum):
    """What an answer means for the run; the words of inbox.toml."""

    OK = "ok"
    TRANSIENT = "transient"
    PERMANENT = "permanent"


class Trouble(StrEnum):
    """Why there is no answer."""

    DNS = "its name cannot be resolved"
    UNREACHED = "no connection could be made"
    TLS = "no secure connection could be made"
    TIMED_OUT = "it did not answer in time"
    CUT = "the connection broke before the answer was complete"


# Those after which it is certain that the call never arrived.
_NEVER_SENT: Final = frozenset({Trouble.DNS, Trouble.UNREACHED, Trouble.TLS})


@dataclass(frozen=True, slots=True)
class ResponseVerdict:
    """What an answer means.

    Attributes:
        meaning: for the run.
        answer: for the destination's circuit and limit.
        refused: whether it is certain that nothing was done.
        page: whether somebody is woken.
        retry_after: the time that the destination wants to be left alone.
        max_attempts: gives up after so many, where the handler allows more.
    """

    meaning: Meaning
    answer: CallOutcome
    refused: bool = False
    page: bool = False
    retry_after: timedelta | None = None
    max_attempts: int | None = None

    def error(self, text: str) -> Transient | Permanent:
        """Returns what to raise where the answer is not ok."""
        if self.meaning is Meaning.PERMANENT:
            # Who was not let in learns nothing of an earlier call.
            return Permanent(text, page=self.page, refused=self.page)
        return Transient(
            text,
            retry_after=self.retry_after,
            refused=self.refused,
            max_attempts=self.max_attempts,
            page=self.page,
        )


def judge(
    status: int, headers: Mapping[str, str], *, spec: DestinationSpec, keyed: bool, now: datetime
) -> ResponseVerdict:
    """Returns what an answer means.

    Args:
        status: its status.
        headers: its headers, by names in lower case.
        spec: the destination.
        keyed: whether an idempotency key was sent.
        now: the time, for a `Retry-After` that is a date.
    """
    limited = status == TOO_MANY_REQUESTS
    asked = retry_after(headers, unit=spec.retry_after, limited=limited, now=now)
    override = spec.responses.get(str(status)) or spec.responses.get(f"{status // 100}xx")
    meaning = Meaning(override) if override else _meaning(status, keyed=keyed)
    transient = meaning is Meaning.TRANSIENT
    return ResponseVerdict(
        meaning,
        _answer(status, meaning, asked),
        refused=transient and 400 <= status < 500 and status not in DOUBTFUL,
        page=not override and status in UNAUTHORIZED,
        retry_after=asked if transient else None,
    )


def unanswered(trouble: Trouble) -> ResponseVerdict:
    """Returns what it means that there is no answer."""
    dns = trouble is Trouble.DNS
    return ResponseVerdict(
        Meaning.TRANSIENT,
        CallOutcome.failed(),
        refused=trouble in _NEVER_SENT,
        page=dns,
        max_attempts=DNS_ATTEMPTS if dns else None,
    )


def _meaning(status: int, *, keyed: bool) -> Meaning:
    if 200 <= status < 300:
        return Meaning.OK
    if status >= 500 or status in WORTH_ANOTHER_TRY or (status == CONFLICT and keyed):
        return Meaning.TRANSIENT
    return Meaning.PERMANENT


def _answer(status: int, meaning: Meaning, asked: timedelta | None) -> CallOutcome:
    if status == TOO_MANY_REQUESTS or (status == SERVICE_UNAVAILABLE and asked is not None):
        return CallOutcome.limited(asked)
    # A 5xx that inbox.toml takes for an answer is one: some APIs say so what is wrong with a call.
    failed = status >= 500 and meaning is Meaning.TRANSIENT
    return CallOutcome.failed() if failed else CallOutcome.ok()
