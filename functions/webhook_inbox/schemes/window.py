"""How far a signed time may lie from ours."""

import re
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from webhook_inbox.errors import Reason, Rejected
from webhook_inbox.instants import EPOCH, from_seconds

# ASCII digits alone: int() would also take signs, spaces, underscores and other scripts' digits,
# and refuses more than 4,300 of them with an exception of its own.
SECONDS: Final = re.compile(r"[0-9]{1,18}", re.ASCII)


@dataclass(frozen=True, slots=True)
class Window:
    """The tolerance, both ways; `headers` name where the time stands (in order of preference).

    Without `headers` the time stands in the signature header. The future is refused like the
    past: a signature dated ahead would stay good for that much longer.
    """

    headers: tuple[str, ...] = ()
    tolerance: timedelta = timedelta(minutes=5)

    def read(self, stamp: str) -> int:
        """Returns the epoch seconds; raises Rejected (malformed)."""
        if SECONDS.fullmatch(stamp) is None:
            raise Rejected(Reason.MALFORMED, "the timestamp is not a number of seconds")
        return int(stamp)

    def judge(self, seconds: int, *, now: datetime) -> datetime:
        """Returns the signed time; raises Rejected where it is stale or in the future."""
        age = (now - EPOCH).total_seconds() - seconds
        limit = self.tolerance.total_seconds()
        if age > limit:
            raise Rejected(Reason.STALE, f"signed more than {limit:.0f} s ago")
        if -age > limit:
            raise Rejected(Reason.FUTURE, f"signed more than {limit:.0f} s ahead of our clock")
        return from_seconds(seconds)
