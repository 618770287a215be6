"""The trace that a call belongs to: https://www.w3.org/TR/trace-context/."""

import re
from hashlib import sha256
from typing import Final

_TRACEPARENT: Final = re.compile(
    r"(?!ff)[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-(?!0{16})[0-9a-f]{16}-([0-9a-f]{2})(-.*)?", re.ASCII
)
_NO_SPAN: Final = "0" * 16


def onward(traceparent: str, *, span: str, origin: str) -> str:
    """Returns the `traceparent` of a call that is made because of an event.

    The event's trace with a span of its own. An event without a trace, or with nonsense, gets
    one by its origin: all calls for it share that, in every attempt.

    Args:
        traceparent: what the event came with, "" for nothing.
        span: 16 random hex digits.
        origin: what the event is known by.
    """
    known = _TRACEPARENT.fullmatch(traceparent.strip())
    made_up = sha256(origin.encode(errors="replace")).hexdigest()[:32]
    trace, flags = (known[1], known[2]) if known else (made_up, "01")
    return f"00-{trace}-{span if span != _NO_SPAN else '1'.zfill(16)}-{flags}"
