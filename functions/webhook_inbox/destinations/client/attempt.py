"""The attempt for which calls to destinations are made, as the client sees it."""

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any, Protocol

from webhook_inbox.destinations.gate import Gate
from webhook_inbox.destinations.propagation import CallChain
from webhook_inbox.domain.idempotency import IdempotencyKey


class RunningEffect(Protocol):
    """The effect within which a call is made; `handlers.effects` implements it."""

    @property
    def key(self) -> str:
        """Its idempotency key."""

    def begin_call(self, call: str) -> None:
        """Records the call that is about to be made under the key; rejects a second one."""

    def end_call(self) -> None:
        """Records that this call succeeded."""

    def fail_call(self, error: Exception, *, acts: bool) -> None:
        """Records that a call failed; `acts` is whether it was made under the key."""


class AttemptEffects(Protocol):
    """The effects of an attempt."""

    @property
    def running(self) -> RunningEffect | None:
        """The effect within which the caller runs, None outside of any."""

    def redact(self, text: str) -> str:
        """Returns a text without the known secrets (G10)."""


class OutboundCall(Protocol):
    """The attempt for which calls are made: the `Context` of a handler."""

    @property
    def source(self) -> str:
        """The event's source."""

    @property
    def event_id(self) -> str:
        """The event's id."""

    @property
    def handler(self) -> str:
        """The handler's name."""

    @property
    def deadline(self) -> datetime:
        """When the attempt times out."""

    @property
    def traceparent(self) -> str:
        """The W3C trace context of the attempt, sent with each call."""

    @property
    def call_chain(self) -> CallChain:
        """The agents that wait for this attempt."""

    @property
    def secrets(self) -> Callable[[str], tuple[str, ...]]:
        """Returns the live values of a secret by its name, the current one first."""

    @property
    def reservations(self) -> dict[str, int]:
        """The reservations of the run at its destinations, in epoch milliseconds."""

    @property
    def gate(self) -> Gate:
        """Admits the calls."""

    @property
    def effects(self) -> AttemptEffects:
        """The effects of the attempt."""

    def effect(
        self,
        name: str,
        fn: Callable[[IdempotencyKey], Any],
        *,
        args: Any = None,
        in_doubt: str | None = None,
        key_lifetime: str | timedelta = "24h",
    ) -> Any:
        """Runs an effect once and returns its result; see `Context.effect`."""
