"""The errors of the library, and how each is handled."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from enum import StrEnum
from types import MappingProxyType
from typing import Any


class InboxError(Exception):
    """The base of every error this library raises."""


class Reason(StrEnum):
    """The reason for a rejection; the metric's dimension."""

    MISSING_SIGNATURE = "missing-signature"  # no signature header, or an empty one
    INVALID_SIGNATURE = "invalid-signature"  # no live secret verifies it
    MALFORMED = "malformed"  # a header or the body is not in the scheme's format
    STALE = "stale"  # signed too long ago
    FUTURE = "future"  # signed too far in the future
    MISSING_EVENT_ID = "missing-event-id"  # no id to deduplicate by
    NO_SECRET = "no-secret"  # the source's secret is not set yet
    KEY_UNAVAILABLE = "key-unavailable"  # the provider's published key cannot be fetched now
    UNKNOWN_KEY = "unknown-key"  # the provider does not publish the key that the delivery names
    NOT_ENROLLING = "not-enrolling"  # a secret was offered, and no operator has opened the source
    CONTESTED_ENROLMENT = "contested-enrolment"  # two secrets were offered in one enrolment


class Rejected(InboxError):
    """The delivery failed verification and creates no event.

    Remedy: compare the source's secret with the provider's, and check that no proxy rewrites the
    body.
    """

    def __init__(self, reason: Reason, detail: str) -> None:
        super().__init__(f"{reason}: {detail}")
        self.reason = reason
        self.detail = detail


class Transient(InboxError):
    """The attempt failed and may succeed later: the run is retried.

    Attributes:
        retry_after: the minimum delay, in seconds or as a timedelta; without it the handler's
            backoff applies.
        refused: whether the call certainly had no effect (a 429, no connection); a first start of
            the effect has then failed and is not in doubt.
        page: whether to page the on-call engineer when the run is given up.
    """

    # See `internal_errors`.
    max_attempts: int | None = None

    def __init__(
        self,
        message: str,
        *,
        retry_after: timedelta | float | None = None,
        refused: bool = False,
        page: bool = False,
    ) -> None:
        super().__init__(message)
        if isinstance(retry_after, int | float):
            # A year is beyond any limit; a larger number could overflow.
            retry_after = timedelta(seconds=min(max(retry_after, 0.0), 31_536_000.0))
        self.retry_after: timedelta | None = retry_after
        self.refused = refused
        self.page = page


class Permanent(InboxError):
    """The attempt failed and a retry will not help: the run is moved to the DLQ.

    Within an effect it also means that nothing was done, unless a call has succeeded before.

    Attributes:
        page: whether to page the on-call engineer.
        refused: whether nothing was done although a call of the effect succeeded.
        doubtful: whether the effect may have happened (a redirect); it is then in doubt.
    """

    def __init__(
        self, message: str, *, page: bool = False, refused: bool = False, doubtful: bool = False
    ) -> None:
        super().__init__(message)
        self.page = page
        self.refused = refused
        self.doubtful = doubtful


class Skipped(InboxError):
    """The handler has nothing to do: the run is finished as skipped."""

    # See `internal_errors`.
    reason = "handler"


class Held(InboxError):
    """The run waits for a person's decision; no attempt is counted.

    `webhookctl hold approve` resumes it, `webhookctl hold deny` ends it as skipped. The attempt
    after an approval is held again if it raises this again: `ctx.hold` remembers the approval.

    Attributes:
        shows: the text that the person sees; at most 1 KB of it is stored.
    """

    # See `internal_errors`.
    subject = "handler"
    fingerprint = ""
    doubtful = False

    def __init__(self, message: str, *, shows: str = "") -> None:
        super().__init__(message)
        # Handlers may pass other types, which could not be stored.
        self.shows = str(shows)

    @property
    def wake(self) -> Mapping[str, Any]:
        """The attributes of `Run.held` of a run that wakes by itself."""
        return {}


class Deferred(InboxError):
    """The run waits until `until`, an aware time; no attempt is counted."""

    # See `internal_errors`.
    parked = False
    waits_for = ""
    reservations: Mapping[str, int] = MappingProxyType({})

    def __init__(self, until: datetime, message: str = "deferred") -> None:
        super().__init__(message)
        if until.tzinfo is None:
            raise ValueError("Deferred needs an aware time, such as datetime.now(UTC) + …")
        self.until = until


class Superseded(InboxError):
    """A later attempt holds the lease: this one may not begin another effect."""


class HandlerTimedOut(InboxError):
    """The handler was still running when its time was up."""


class Unavailable(InboxError):
    """An AWS service did not answer, throttled, or failed; the call may have had an effect.

    No manual remedy: ingest answers 503 and the provider retries; the processor's message becomes
    visible again.
    """

    def __init__(self, service: str, operation: str, cause: str) -> None:
        super().__init__(f"{service} {operation}: {cause}")
        self.service = service
        self.operation = operation


class AccessDenied(Unavailable):
    """AWS refused the call, since the caller's identity has no right to make it.

    Remedy: grant the right; a function's role has all that it needs when it is deployed.
    """


class NotPublished(InboxError):
    """The provider's server answered, but publishes no document at this URL.

    No remedy if the sender chose the URL: the request will not succeed later.
    """


class NoTimeLeft(Unavailable):
    """The invocation has no time left for a call, which was not made."""

    def __init__(self, service: str, operation: str) -> None:
        super().__init__(service, operation, "no time is left for an attempt")


class ConditionFailed(InboxError):
    """The condition of a write failed; `old` is the row as it is."""

    def __init__(self, old: dict[str, Any] | None) -> None:
        super().__init__("the condition of the write failed")
        self.old = old


class ForeignMessage(InboxError):
    """A queue message that the inbox did not write, or of an unknown version."""


class ConfigurationError(InboxError):
    """`inbox.toml` or a handler's declaration is invalid; the text names the remedy."""
