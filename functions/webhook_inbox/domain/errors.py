"""What can go wrong, each class saying what happens next. Imports nothing of ours."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any


class InboxError(Exception):
    """The base of every error this library raises."""


class Reason(StrEnum):
    """Why a delivery is not let in; the value is the metric's dimension."""

    MISSING_SIGNATURE = "missing-signature"  # no signature header, or an empty one
    INVALID_SIGNATURE = "invalid-signature"  # no live secret made it
    MALFORMED = "malformed"  # a header or the body cannot be read as the scheme demands
    STALE = "stale"  # signed too long ago
    FUTURE = "future"  # signed too far ahead of our clock
    MISSING_EVENT_ID = "missing-event-id"  # nothing to deduplicate by
    NO_SECRET = "no-secret"  # the source's secret is not set yet
    KEY_UNAVAILABLE = "key-unavailable"  # the provider's published key cannot be fetched now
    NOT_ENROLLING = "not-enrolling"  # a secret was offered, and no operator is waiting for one


class Rejected(InboxError):
    """The delivery failed verification. Nothing of it becomes an event.

    Remedy: compare the source's secret with the provider's, and see that nothing on the way
    rewrites the body.
    """

    def __init__(self, reason: Reason, detail: str) -> None:
        super().__init__(f"{reason}: {detail}")
        self.reason = reason
        self.detail = detail


class Transient(InboxError):
    """The attempt failed and may succeed later: the run is tried again.

    Attributes:
        retry_after: the earliest useful delay, given as a number of seconds or a timedelta;
            without it the handler's backoff decides.
        refused: whether it is certain that nothing was done (a 429, a connection that was never
            made); an effect is then known to have failed, and is not in doubt.
        max_attempts: gives up after so many attempts, where the handler allows more.
        page: whether somebody is woken when it gives up.
    """

    def __init__(
        self,
        message: str,
        *,
        retry_after: timedelta | float | None = None,
        refused: bool = False,
        max_attempts: int | None = None,
        page: bool = False,
    ) -> None:
        super().__init__(message)
        if isinstance(retry_after, int | float):
            # A year, beyond any limit: an absurd number must not become another error.
            retry_after = timedelta(seconds=min(max(retry_after, 0.0), 31_536_000.0))
        self.retry_after: timedelta | None = retry_after
        self.refused = refused
        self.max_attempts = max_attempts
        self.page = page


class Permanent(InboxError):
    """The attempt failed and no repetition will help: the run goes to the dead letters.

    Attributes:
        page: whether somebody is woken.
        refused: whether a call was turned away before anybody looked at what it asks for (a 401);
            an effect that an earlier call left in doubt then stays so.
    """

    def __init__(self, message: str, *, page: bool = False, refused: bool = False) -> None:
        super().__init__(message)
        self.page = page
        self.refused = refused


class Skipped(InboxError):
    """There is nothing to do, and why: the run is finished as skipped, and not attempted again."""


class Held(InboxError):
    """The run waits for a person's decision; no attempt is spent.

    `webhookctl hold approve` lets it go on, `webhookctl hold deny` ends it as skipped.

    Attributes:
        subject: what is decided, like "policy" or "effect:refund"; an approval is for this.
        shows: what the person decides about, as text; at most 1 KB of it is kept.
        fingerprint: of what the person sees; an approval of other content does not count.
    """

    def __init__(
        self, message: str, *, subject: str = "handler", shows: str = "", fingerprint: str = ""
    ) -> None:
        super().__init__(message)
        # Handlers give what they have at hand, and what is no text could not be recorded.
        self.subject, self.shows, self.fingerprint = str(subject), str(shows), str(fingerprint)


class Deferred(InboxError):
    """The run waits until `until` for something outside it; no attempt is spent.

    `parked` waits without a message, for somebody who wakes it earlier; `waits_for` is what an
    operator is told, like "destination crm"; `reservations` is what the run keeps of its turns at
    destinations, see `Run.reservations`.
    """

    def __init__(
        self,
        until: datetime,
        message: str = "deferred",
        *,
        parked: bool = False,
        waits_for: str = "",
        reservations: Mapping[str, int] | None = None,
    ) -> None:
        super().__init__(message)
        if until.tzinfo is None:
            raise ValueError("Deferred needs an aware time, such as datetime.now(UTC) + …")
        self.until = until
        self.parked = parked
        self.waits_for = str(waits_for)
        self.reservations = dict(reservations or {})


class Superseded(InboxError):
    """A later attempt has taken over: this one may begin nothing any more."""


class HandlerTimedOut(InboxError):
    """The handler was still running when its time was up."""


class Unavailable(InboxError):
    """An AWS service did not answer, throttled, or failed; the call may or may not have happened.

    Remedy: none by hand. Ingest answers 503 and the provider retries; the processor's message
    comes back.
    """

    def __init__(self, service: str, operation: str, cause: str) -> None:
        super().__init__(f"{service} {operation}: {cause}")
        self.service = service
        self.operation = operation


class ConditionFailed(InboxError):
    """A conditional write found another state than it asked for; `old` is the row it found."""

    def __init__(self, old: dict[str, Any] | None) -> None:
        super().__init__("the row is not in the state this write asked for")
        self.old = old


class ForeignMessage(InboxError):
    """A queue message that no inbox wrote, or one of a version this code does not know."""


class ConfigurationError(InboxError):
    """`inbox.toml` or a handler's declaration cannot be used; the text names the remedy."""
