"""How far a signed time may lie from ours."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from webhook_inbox.domain.errors import Reason, Rejected
from webhook_inbox.domain.model import Delivery
from webhook_inbox.domain.timestamps import from_ms, to_ms

# ASCII digits alone: int() would also take signs, spaces, underscores and other scripts' digits,
# and refuses more than 4,300 of them with an exception of its own.
DIGITS: Final = re.compile(r"[0-9]{1,18}", re.ASCII)
# RFC 3339; Twitch writes nanoseconds, Box an offset.
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
    """Reads epoch seconds."""
    return _digits(stamp) * 1000


def milliseconds(stamp: str) -> int:
    """Reads epoch milliseconds."""
    return _digits(stamp)


def iso(stamp: str) -> int:
    """Reads ISO 8601 with an offset, up to nanoseconds, of which milliseconds are kept."""
    found = ISO.fullmatch(stamp)
    if found is None:
        raise ValueError("not ISO 8601 with an offset")
    moment, fraction, offset = found[1].upper(), found[2] or ".0", found[3].upper()
    text = moment + fraction[:MICROSECONDS].ljust(MICROSECONDS, "0") + offset
    return to_ms(datetime.fromisoformat(text).astimezone(UTC))


def _digits(stamp: str) -> int:
    if DIGITS.fullmatch(stamp) is None:
        raise ValueError("not a whole number")
    return int(stamp)


WRITERS: Final[dict[Clockwork, Callable[[datetime], str]]] = {
    seconds: lambda now: str(to_ms(now) // 1000),
    milliseconds: lambda now: str(to_ms(now)),
    iso: lambda now: from_ms(to_ms(now)).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """Where the signed time stands, how it is written, and how far it may be off.

    Attributes:
        headers: lower-case names of the header with the time, in order of preference. Without
            them it stands in the signature's own header, or where `find` finds it.
        tolerance: how far it may be off, both ways; None where the provider names no bound and
            honest retries carry their first time.
        clockwork: how it is written.
        find: finds it in the delivery's body.
        ahead: how far it may lie in the future, where that differs. The future is refused like
            the past: a signature dated ahead would stay good for that much longer.
        exclusive: what is exactly as old as the tolerance is too old already.
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
        """Returns the signed time, None where there is no such date.

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
