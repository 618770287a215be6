"""The times that a JSON Web Token claims, judged by our clock."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from webhook_inbox.domain.errors import Reason, Rejected
from webhook_inbox.domain.timestamps import from_seconds, to_ms

Claims = Mapping[str, Any]

SKEW: Final = timedelta(minutes=1)
# Until the year 33658: what is beyond is no date.
LAST_SECOND: Final = 10**12


@dataclass(frozen=True, slots=True, kw_only=True)
class Times:
    """How a token's times are judged.

    Attributes:
        ahead: how far `iat` and `nbf` may lie ahead of our clock.
        grace: how long a token counts beyond its `exp`, for clocks that differ.
        max_age: how old `iat` may be; None where it does not age.
    """

    ahead: timedelta = SKEW
    grace: timedelta = timedelta(0)
    max_age: timedelta | None = None

    def judge(self, claims: Claims, now: datetime) -> datetime | None:
        """Returns when the token was issued, None where it does not say.

        Raises:
            Rejected: it has expired or is too old (stale), has not begun (future), or says what
                is no time (malformed).
        """
        issued, begins, ends = (_seconds(claims, name) for name in ("iat", "nbf", "exp"))
        current = to_ms(now) / 1000
        if ends is not None and current >= ends + self.grace.total_seconds():
            raise Rejected(Reason.STALE, "the token has expired")
        for begun in (issued, begins):
            if begun is not None and begun - current > self.ahead.total_seconds():
                raise Rejected(Reason.FUTURE, "the token begins ahead of our clock")
        if self.max_age is not None:
            if issued is None:
                raise Rejected(Reason.MALFORMED, "the token does not claim iat")
            if current - issued > self.max_age.total_seconds():
                raise Rejected(Reason.STALE, "the token is too old")
        return None if issued is None else from_seconds(issued)


def _seconds(claims: Claims, name: str) -> int | None:
    value = claims.get(name)
    if value is None:
        return None
    if (
        isinstance(value, bool)
        or not isinstance(value, int | float)
        or not (0 <= value < LAST_SECOND)
    ):
        raise Rejected(Reason.MALFORMED, f"the token's {name} is no time")
    return int(value)
