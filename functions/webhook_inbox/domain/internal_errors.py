"""Errors of `domain.errors` with details that only the library sets.

Handlers catch and raise the base classes; the details are no part of their signatures.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from webhook_inbox.domain.errors import Deferred, Held, Skipped, Transient
from webhook_inbox.domain.model import SkipReason


class ApprovalRequired(Held):
    """A hold whose approval is remembered.

    Args:
        subject: the subject of the approval, like "policy" or "effect:refund".
        fingerprint: the hash of the content; an approval of other content is ignored.
        doubtful: whether it is unknown if an effect happened.
    """

    def __init__(
        self,
        message: str,
        *,
        subject: str,
        shows: str,
        fingerprint: str = "",
        doubtful: bool = False,
    ) -> None:
        super().__init__(message, shows=shows)
        self.subject, self.fingerprint, self.doubtful = subject, fingerprint, doubtful


class Postponed(Deferred):
    """A deferral with a known cause.

    Args:
        parked: whether the run waits without a message and can be resumed earlier.
        waits_for: see `Run.waits_for`.
        reservations: stored as `Run.reservations`.
    """

    def __init__(
        self,
        until: datetime,
        message: str,
        *,
        parked: bool = False,
        waits_for: str = "",
        reservations: Mapping[str, int] | None = None,
    ) -> None:
        super().__init__(until, message)
        self.parked, self.waits_for = parked, waits_for
        self.reservations = dict(reservations or {})


class SkippedBecause(Skipped):
    """A skip whose reason is known, besides its text."""

    def __init__(self, reason: SkipReason, message: str) -> None:
        super().__init__(message)
        self.reason = str(reason)


@dataclass(frozen=True, slots=True)
class DestinationWait:
    """The wait of a run whose call failed at a destination whose circuit is open.

    Attributes:
        waits_for: see `Run.waits_for`.
        until: when the run may call again.
    """

    waits_for: str
    until: datetime


class TransientOfCall(Transient):
    """A call's error.

    Args:
        max_attempts: a limit of attempts below the handler's own.
        wait: the wait of the run, whose attempt is then not counted; None where it counts.
    """

    def __init__(
        self,
        message: str,
        *,
        retry_after: timedelta | None = None,
        refused: bool = False,
        max_attempts: int | None = None,
        page: bool = False,
        wait: DestinationWait | None = None,
    ) -> None:
        super().__init__(message, retry_after=retry_after, refused=refused, page=page)
        self.max_attempts = max_attempts
        self.wait = wait
