"""The W3C trace context of an event, from its delivery to the calls of its handlers.

https://www.w3.org/TR/trace-context/#traceparent-header
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Final

HEADER: Final = "traceparent"
# A version after 00 may append fields, which are ignored; ff is invalid, as is an id of zeros.
_VALID: Final = re.compile(
    r"(?!ff)([0-9a-f]{2})-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})(-.*)?",
    re.ASCII,
)
_SAMPLED: Final = 0x01


@dataclass(frozen=True, slots=True)
class Trace:
    """The trace of an event.

    Attributes:
        id: 32 hex digits.
        span: 16 hex digits: the sender's span, or that of an attempt.
        sampled: whether the sender records the trace.
    """

    id: str
    span: str
    sampled: bool = True

    @classmethod
    def of(cls, headers: Mapping[str, str], *, source: str, event_id: str) -> "Trace":
        """Returns the trace of an event: that of its `traceparent`, or one derived from its id.

        A derived trace is the same in every delivery, attempt and replay of the event. `headers`
        are those of a verified delivery, by lower-case name.
        """
        given = headers.get(HEADER, "").strip(" \t")
        return _parsed(given) or cls(*_digits(source, event_id))

    @property
    def traceparent(self) -> str:
        """The header's value, in version 00."""
        return f"00-{self.id}-{self.span}-{'01' if self.sampled else '00'}"

    def attempt(self, source: str, event_id: str, handler: str, number: int) -> "Trace":
        """Returns the trace with the span of an attempt, the same whenever it is asked for."""
        return replace(self, span=_digits(source, event_id, handler, str(number))[1])


def _parsed(text: str) -> Trace | None:
    found = _VALID.fullmatch(text)
    version, trace, span, flags, more = found.groups() if found else ("", "", "", "", "")
    if not version or (version == "00" and more is not None):
        return None
    return Trace(trace, span, bool(int(flags, 16) & _SAMPLED))


def _digits(*parts: str) -> tuple[str, str]:
    """Returns a trace's id and a span's, which have as many hex digits as W3C wants."""
    digest = sha256("\0".join(parts).encode(errors="replace")).hexdigest()
    return digest[:32], digest[32:48]
