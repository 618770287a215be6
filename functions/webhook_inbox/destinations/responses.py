"""Classifies the response of a destination: for the run, and for its circuit and rate limit.

    2xx                               ok
    3xx, other 4xx                    permanent: retrying will not change the response
    401, 403                          permanent, and pages: every call will fail
    409                               transient under a key: an earlier call is in progress
    408, 425, 429, 5xx, no response   transient

A rejection (4xx, except 408 and 409 under a key) and a call that was never sent did nothing. After
any other failure the effect is in doubt (handlers/effects/effect.py): a redirect may follow an
execution, and an answer that the key was used shows that another request has it.
`[destinations.NAME] responses` overrides the class for the run, not for the effect.
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
from webhook_inbox.domain.internal_errors import DestinationWait, TransientOfCall
from webhook_inbox.domain.manifest import DestinationSpec

# A longer `Retry-After` is cut to this.
LIMIT: Final = timedelta(hours=24)
MILLISECONDS: Final = ("retry-after-ms", "x-ms-retry-after-ms")
# The window of HubSpot's limit: after a 429, the window has ended by then.
WINDOW: Final = "x-hubspot-ratelimit-interval-milliseconds"
# HubSpot's windows are 1 s and 10 s. Beside this header, a number of 1000 or more is taken for
# milliseconds: as seconds it would be 17 minutes, and a wrong guess costs one more 429.
_SURELY_MILLISECONDS: Final = 1000
_NUMBER: Final = re.compile(r"[0-9]{1,15}(\.[0-9]{1,15})?", re.ASCII)


def retry_after(
    headers: Mapping[str, str], *, unit: str, limited: bool, now: datetime
) -> timedelta | None:
    """Returns the pause that a response requests, 0 to 24 h, or None.

    `headers` have names in lower case; `unit` is the unit of a number, "seconds" or "milliseconds";
    `limited` is whether the status is 429.
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
        # The format of asctime has no zone, and is always UTC.
        return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    except (ValueError, TypeError, IndexError, OverflowError):
        return None


REQUEST_TIMEOUT: Final = 408
CONFLICT: Final = 409
TOO_MANY_REQUESTS: Final = 429
SERVICE_UNAVAILABLE: Final = 503
UNAUTHORIZED: Final = frozenset({401, 403})
RETRYABLE: Final = frozenset({REQUEST_TIMEOUT, 425, TOO_MANY_REQUESTS})
# After any other 4xx, the call was certainly not executed.
DOUBTFUL: Final = frozenset({REQUEST_TIMEOUT, CONFLICT})
# How APIs word that another request has used the idempotency key, or uses it now. An answer that
# only repeats the key, or misses it, says nothing of the kind.
_KEY_USED: Final = re.compile(
    r"idempoten[\w\s'-]{0,40}?(error|conflict|used|in use|already|exists|mismatch|different|same)"
    r"|(used|in use|outstanding|conflict)[\w\s'-]{0,40}idempoten"
    r"|duplicate.request|\bkey (is|was|has been) (already )?(in )?use",
    re.IGNORECASE,
)
# A name that cannot be resolved is usually a mistake in inbox.toml, not an outage.
DNS_ATTEMPTS: Final = 3


class ResponseClass(StrEnum):
    """The class of a response, as inbox.toml spells it."""

    OK = "ok"
    TRANSIENT = "transient"
    PERMANENT = "permanent"


class TransportFailure(StrEnum):
    """Why there is no response."""

    DNS = "its name cannot be resolved"
    UNREACHED = "no connection could be made"
    TLS = "no secure connection could be made"
    TIMED_OUT = "it did not answer in time"
    CUT = "the connection broke before the answer was complete"


# After these, the call certainly never arrived.
_NEVER_SENT: Final = frozenset(
    {TransportFailure.DNS, TransportFailure.UNREACHED, TransportFailure.TLS}
)


@dataclass(frozen=True, slots=True)
class ResponseVerdict:
    """The class of a response.

    Attributes:
        meaning: for the run.
        answer: for the circuit and the rate limit.
        refused: whether the call was certainly not executed, and may succeed later.
        doubtful: whether the call may have been executed, and will not succeed later.
        page: whether to page the on-call engineer.
        retry_after: the pause that the destination requested.
        max_attempts: the limit of attempts, where the handler allows more.
    """

    meaning: ResponseClass
    answer: CallOutcome
    refused: bool = False
    doubtful: bool = False
    page: bool = False
    retry_after: timedelta | None = None
    max_attempts: int | None = None

    def error(
        self, text: str, *, key_used: bool = False, wait: DestinationWait | None = None
    ) -> Transient | Permanent:
        """Returns the error for a response that is not ok.

        Args:
            text: the text of the error.
            key_used: see `says_key_used`.
            wait: see `TransientOfCall`.
        """
        if self.meaning is ResponseClass.PERMANENT:
            return Permanent(text, page=self.page, doubtful=self.doubtful or key_used)
        return TransientOfCall(
            text,
            retry_after=self.retry_after,
            refused=self.refused and not key_used,
            max_attempts=self.max_attempts,
            page=self.page,
            wait=wait,
        )


def classify(
    status: int,
    headers: Mapping[str, str],
    *,
    spec: DestinationSpec,
    keyed: bool,
    now: datetime,
    safe: bool = False,
) -> ResponseVerdict:
    """Classifies a response.

    `headers` have names in lower case; `keyed` is whether an idempotency key was sent; `now` is for
    a `Retry-After` that is a date; `safe` is whether the method changes nothing, like GET.
    """
    limited = status == TOO_MANY_REQUESTS
    asked = retry_after(headers, unit=spec.retry_after, limited=limited, now=now)
    override = spec.responses.get(str(status)) or spec.responses.get(f"{status // 100}xx")
    meaning = ResponseClass(override) if override else _meaning(status, keyed=keyed)
    transient = meaning is ResponseClass.TRANSIENT
    rejected = 400 <= status < 500 and status not in DOUBTFUL
    return ResponseVerdict(
        meaning,
        _answer(status, meaning, asked),
        refused=transient and rejected,
        doubtful=(
            meaning is ResponseClass.PERMANENT
            and not (rejected or safe)
            and (keyed or status != CONFLICT)
        ),
        page=not override and status in UNAUTHORIZED,
        retry_after=asked if transient else None,
    )


def says_key_used(body: str) -> bool:
    """Returns whether a response says that another request has the idempotency key of its call."""
    return _KEY_USED.search(body) is not None


def classify_no_response(failure: TransportFailure) -> ResponseVerdict:
    """Classifies a call without a response."""
    dns = failure is TransportFailure.DNS
    return ResponseVerdict(
        ResponseClass.TRANSIENT,
        CallOutcome.failed(),
        refused=failure in _NEVER_SENT,
        page=dns,
        max_attempts=DNS_ATTEMPTS if dns else None,
    )


def _meaning(status: int, *, keyed: bool) -> ResponseClass:
    if 200 <= status < 300:
        return ResponseClass.OK
    if status >= 500 or status in RETRYABLE or (status == CONFLICT and keyed):
        return ResponseClass.TRANSIENT
    return ResponseClass.PERMANENT


def _answer(status: int, meaning: ResponseClass, asked: timedelta | None) -> CallOutcome:
    pause = asked if status == SERVICE_UNAVAILABLE else None
    # An override of a 5xx says that the destination works: some APIs report bad requests as 5xx.
    if status >= 500 and meaning is ResponseClass.TRANSIENT:
        return CallOutcome.failed(pause)
    if status == TOO_MANY_REQUESTS or pause is not None:
        return CallOutcome.limited(asked)
    return CallOutcome.ok()
