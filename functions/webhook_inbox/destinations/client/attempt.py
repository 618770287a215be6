"""What calls to destinations are made for, as far as they have to know it."""

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any, Protocol

from webhook_inbox.destinations.circuit import CallOutcome
from webhook_inbox.destinations.propagation import CallChain
from webhook_inbox.domain.idempotency import IdempotencyKey
from webhook_inbox.domain.manifest import DestinationSpec


class Gate(Protocol):
    """What spares destinations; see destinations/gate.py."""

    def enter(
        self, spec: DestinationSpec, reservations: dict[str, int], *, until: datetime
    ) -> None:
        """Lets a call begin, or raises what the run does instead."""

    def report(self, spec: DestinationSpec, answer: CallOutcome) -> None:
        """Notes how a call ended."""


class Running(Protocol):
    """The effects of an attempt; see effects/once.py."""

    def current_key(self) -> str:
        """Returns the key of the effect that is being run, "" outside of any."""

    def calling(self, what: str) -> None:
        """Notes the call that is about to be made under that key; refuses a second one."""

    def called(self) -> None:
        """Notes that this call succeeded."""

    def redact(self, text: str) -> str:
        """Returns a text as it may be recorded, without any secret that is known (G10)."""


class OutboundCall(Protocol):
    """The attempt that calls are made for: a handler's `Context`."""

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
        """When the attempt is ended."""

    @property
    def traceparent(self) -> str:
        """The event's trace context, "" for none."""

    @property
    def call_chain(self) -> CallChain:
        """The agents that have called one another up to here."""

    @property
    def secrets(self) -> Callable[[str], tuple[str, ...]]:
        """Gives a secret's live values, the current one first."""

    @property
    def reservations(self) -> dict[str, int]:
        """When the run may call its destinations."""

    @property
    def gate(self) -> Gate:
        """What spares destinations."""

    @property
    def effects(self) -> Running:
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
        """Lets an effect happen once and returns its result; see `Context.effect`."""
