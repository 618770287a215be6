"""How a destination answered a call, as far as sparing it goes."""

from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum


class Kind(StrEnum):
    """What an answer says of the destination's health."""

    OK = "ok"  # it answered, whatever it thinks of the request
    FAILED = "failed"  # it did not answer, or with an error of its own
    LIMITED = "limited"  # it wants to be called less often


@dataclass(frozen=True, slots=True)
class Answer:
    """How a call ended; `retry_after` is what a destination that is limited asked for."""

    kind: Kind
    retry_after: timedelta | None = None

    @classmethod
    def ok(cls) -> "Answer":
        """Returns the answer of a destination that works."""
        return cls(Kind.OK)

    @classmethod
    def failed(cls) -> "Answer":
        """Returns the answer of one that does not."""
        return cls(Kind.FAILED)

    @classmethod
    def limited(cls, retry_after: timedelta | None = None) -> "Answer":
        """Returns the answer of one that is called too often."""
        return cls(Kind.LIMITED, retry_after)
