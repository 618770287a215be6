"""Signed times: formats and tolerance."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from webhook_inbox.domain.errors import Reason, Rejected
from webhook_inbox.domain.model import Delivery
from webhook_inbox.domain.timestamps import from_ms, to_ms

# A fixed number of ASCII digits: where a time is signed beside a body without a separator, a digit
# could otherwise be moved from one into the other. These are the times from 2001 to 2286.
SECONDS: Final = re.compile(r"[0-9]{10}", re.ASCII)
MILLISECONDS: Final = re.compile(r"[0-9]{13}", re.ASCII)
# RFC 3339; Twitch writes nanoseconds, Box an offset. No such time begins or ends with another.
ISO: Final = re.compile(
    r"([0-9]{4}-[0-9]{2}-[0-9]{2}[Tt][0-9]{2}:[0-9]{2}:[0-9]{2})(\.[0-9]{1,9})?"
    r"([Zz]|[+-][0-9]{2}:?[0-9]{2})",
    re.ASCII,
)
DEFAULT_TOLERANCE: Final = timedelta(minutes=5)
MICROSECONDS: Final = 7  # with the point

# A stamp to epoch milliseconds; raises ValueError.
Clockwork = Callable[[str], int]


def seconds(stamp: str) -> int:
    """Reads epoch seconds of ten digits."""
    return _digits(stamp, SECONDS) * 1000


def milliseconds(stamp: str) -> int:
    """Reads epoch milliseconds of thirteen digits."""
    return _digits(stamp, MILLISECONDS)


def iso(stamp: str) -> int:
    """Reads ISO 8601 with an offset, up to nanoseconds, of which milliseconds are kept."""
    found = ISO.fullmatch(stamp)
    if found is None:
        raise ValueError("not ISO 8601 with an offset")
    moment, fraction, offset = found[1].upper(), found[2] or ".0", found[3].upper()
    text = moment + fraction[:MICROSECONDS].ljust(MICROSECONDS, "0") + offset
    return to_ms(datetime.fromisoformat(text).astimezone(UTC))


def _digits(stamp: str, form: re.Pattern[str]) -> int:
    if form.fullmatch(stamp) is None:
        raise ValueError("not a whole number of this length")
    return int(stamp)


WRITERS: Final[dict[Clockwork, Callable[[datetime], str]]] = {
    seconds: lambda now: str(to_ms(now) // 1000),
    milliseconds: lambda now: str(to_ms(now)),
    iso: lambda now: from_ms(to_ms(now)).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """The location, format and tolerance of the signed time.

    Attributes:
        headers: lower-case names of the header with the time, in order of preference. Without
            them, the time is in the signature's header, or found by `find`.
        tolerance: the maximum difference, both ways; None if the provider defines no bound and
            its retries keep the first time.
        clockwork: its format.
        find: finds it in the body.
        ahead: the maximum time in the future, if it differs. The future is limited because a
            signature dated ahead would stay valid for longer.
        exclusive: an age of exactly the tolerance is too old.
    """

    headers: tuple[str, ...] = ()
    tolerance: timedelta | None = DEFAULT_TOLERANCE
    clockwork: Clockwork = seconds
    find: Callable[[Delivery], str | None] | None = None
    ahead: timedelta | None = None
    exclusive: bool = False

    def read(self, stamp: str) -> int:
        """Returns the epoch milliseconds; raises Rejected (malformed)."""
        try:
            return self.clockwork(stamp)
        except (ValueError, OverflowError) as error:
            raise Rejected(Reason.MALFORMED, "the timestamp cannot be read") from error

    def write(self, now: datetime) -> str:
        """Returns a time as the provider writes it."""
        return WRITERS[self.clockwork](now)

    def judge(self, moment: int, *, now: datetime) -> datetime | None:
        """Returns the signed time, None if it is not a valid date.

        Raises:
            Rejected: it is stale or in the future.
        """
        if self.tolerance is not None:
            age = to_ms(now) - moment
            behind = self.tolerance // timedelta(milliseconds=1)
            ahead = behind if self.ahead is None else self.ahead // timedelta(milliseconds=1)
            if age > behind or (self.exclusive and age == behind):
                raise Rejected(Reason.STALE, f"signed more than {behind / 1000:.0f} s ago")
            if -age > ahead:
                limit = f"{ahead / 1000:.0f} s ahead of our clock"
                raise Rejected(Reason.FUTURE, f"signed more than {limit}")
        try:
            return from_ms(moment)
        except OverflowError:
            return None
