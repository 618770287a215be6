"""The inbox that the console shows, and the person who uses it."""

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from datetime import timedelta
from functools import cached_property, partial
from typing import Any, Final, TypeVar

from webhook_inbox.client.budget import SECONDS, BoundedTable
from webhook_inbox.client.cached import Cached
from webhook_inbox.client.client import InboxClient
from webhook_inbox.client.metered import MeteredTable
from webhook_inbox.client.names import known_manifest
from webhook_inbox.client.suggestions import Program
from webhook_inbox.client.target import Target
from webhook_inbox.domain.audit import Actor
from webhook_inbox.domain.manifest import Manifest
from webhook_inbox.domain.ports import Clock, Table
from webhook_inbox.ledger.queries import Ledger
from webhookctl.console.commands import Told, told
from webhookctl.console.costs import LIST_SECONDS, AwsCalls
from webhookctl.invocation import Invocation

T = TypeVar("T")
PARTLY: Final = (
    "One page reads a part of so many rows: lists and counts here are of that part. Narrow them"
    " with a filter, or use the command, which reads all."
)
# Seconds.
RECONNECT: Final = 10
LIST_SECONDS_LOCAL: Final = 3
# A name that begins so is production, however the stage is called.
PRODUCTION: Final = ("prod", "live")


def metered(target: Target, table: Table) -> Target:
    """Returns the target with another table; its other resources are the same."""

    class Metered(type(target)):  # type: ignore[misc]
        """A target whose ledger counts its reads and refuses writes."""

        @property
        def table(self) -> Table:
            return table

    return Metered(**{each.name: getattr(target, each.name) for each in fields(target)})


@dataclass(frozen=True)
class ConsoleInbox:
    """One inbox, as the pages read it and the actions change it.

    Attributes:
        begun: the invocation of `webhookctl console`.
        write: whether actions are allowed.
    """

    begun: Invocation
    write: bool

    @property
    def call(self) -> Invocation:
        """The invocation for an action.

        An edited inbox.toml changes the stack on this machine, so it is read again; a connection
        to AWS stays, since another may ask for a one-time password.
        """
        return self._reconnected() if self.begun.selection.local else self.begun

    @cached_property
    def _reconnected(self) -> Cached[Invocation]:
        begun = self.begun
        # Without the line that a command prints about its target.
        again = partial(Invocation, begun.world, begun.selection, printer=Told())
        return Cached(again, seconds=RECONNECT)

    @property
    def target(self) -> Target:
        """The inbox's resources."""
        return self.call.target

    @property
    def clock(self) -> Clock:
        """The clock."""
        return self.call.clock

    @property
    def program(self) -> Program:
        """Makes the commands that do the same as a page."""
        return self.call.program

    @property
    def client(self) -> InboxClient:
        """The operations on the inbox, with the right to change it only if actions are allowed."""
        return self.call.client if self.write else self.reading()

    @property
    def actor(self) -> Actor:
        """The console's user, as the audit records it."""
        return self.call.actor(None)

    def reading(self, seconds: float | None = SECONDS) -> InboxClient:
        """Returns a client for one page: it only reads, for so many seconds, and counts the price.

        None is for operations that have a bound of their own.

        A page says so where `is_cut` of it is True after its lists were read.
        """
        reader = InboxClient(self.counted, program=self.program, clock=self.clock, table=self.table)
        return reader if seconds is None else reader.reading(timedelta(seconds=seconds))

    def changing(
        self, perform: Callable[["ConsoleInbox", dict[str, Any]], str], values: dict[str, Any]
    ) -> str:
        """Performs an action, and lets the next pages read anew what they keep."""
        try:
            return perform(self, values)
        finally:
            # Also after an error, which may follow a change.
            self.changed()

    def read(
        self, command: Callable[..., None], *, seconds: float = SECONDS, **values: Any
    ) -> Told:
        """Returns what a command prints that only reads; its reads are counted, writes refused.

        The reads are bounded: a note says so where they left out rows.
        """
        table = self.bounded(seconds)
        result = told(self._reading(table), command, **values)
        if table.cut:
            result.partly = True
            result.note(PARTLY)
        return result

    def examine(self, question: Callable[..., T], *given: Any) -> T:
        """Returns the answer of a function of a command that only reads."""
        reading = replace(self._reading(self.bounded()), printer=Told())
        return question(reading, *given)

    def act(self, command: Callable[..., None], **values: Any) -> Told:
        """Returns what a command prints that acts; the audit has the console's user."""
        try:
            return told(self.call, command, **values)
        finally:
            # Also after an error, which may follow a change.
            self.changed()

    def on_change(self, forget: Callable[[], None]) -> None:
        """Registers what forgets a value that pages keep, for after each action."""
        self._kept.append(forget)

    def changed(self) -> None:
        """Lets the next pages read anew what they keep."""
        for forget in self._kept:
            forget()

    @cached_property
    def _kept(self) -> list[Callable[[], None]]:
        return []

    def bounded(self, seconds: float = SECONDS) -> BoundedTable:
        """Returns the table for one page's lists, for so many seconds from now."""
        return BoundedTable(self.table, seconds=seconds)

    def _reading(self, table: Table) -> Invocation:
        target = metered(self.counted, table)
        return Invocation(replace(self.call.world, connect=lambda _: target), self.call.selection)

    @property
    def counted(self) -> Target:
        """The inbox's resources for reading, by clients whose calls are counted."""
        return self.calls.counted(self.target)

    @cached_property
    def calls(self) -> AwsCalls:
        """The calls to AWS of this session's pages, without those to DynamoDB's table."""
        return AwsCalls()

    @property
    def dollars(self) -> float:
        """The estimated price of all reads so far."""
        return self.table.dollars + self.calls.dollars

    @cached_property
    def table(self) -> MeteredTable:
        """The ledger's table for pages: it refuses writes, and counts the price of its reads."""
        return MeteredTable(self.target.table)

    @property
    def ledger(self) -> Ledger:
        """The ledger for pages, without bodies."""
        return Ledger(table=self.table)

    @property
    def manifest(self) -> Manifest:
        """The deployed sources and handlers; empty where they cannot be read."""
        return known_manifest(self.target)

    @property
    def is_production(self) -> bool:
        """True if the pages are marked in red."""
        return not self.target.local and self.target.stage.lower().startswith(PRODUCTION)

    @property
    def refusal(self) -> str:
        """Why no action is possible, "" if actions are."""
        return "" if self.write else "read-only: start `webhookctl console` with --write"

    @property
    def list_seconds(self) -> int:
        """The seconds between two readings of a list in an open tab."""
        return LIST_SECONDS_LOCAL if self.target.local else LIST_SECONDS

    @cached_property
    def place(self) -> str:
        """The stack's account and region; the address of an inbox on this machine."""
        return self.target.line.removeprefix(f"{self.target.name} · ")
