"""The inbox that the console shows, and the person who uses it."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from functools import cached_property
from typing import Any, Final

from webhook_inbox.client.budget import SECONDS
from webhook_inbox.client.cached import Cached
from webhook_inbox.client.call_costs import AwsCalls
from webhook_inbox.client.client import InboxClient
from webhook_inbox.client.metered import MeteredTable
from webhook_inbox.client.names import known_manifest
from webhook_inbox.client.suggestions import Program
from webhook_inbox.client.target import Target
from webhook_inbox.domain.audit import Actor
from webhook_inbox.domain.manifest import Manifest
from webhook_inbox.domain.ports import Clock
from webhookctl.console.costs import LIST_SECONDS
from webhookctl.invocation import Invocation

PARTLY: Final = (
    "One page reads a part of so many rows: lists and counts here are of that part. Narrow them"
    " with a filter, or use the command, which reads all."
)
# Seconds.
RECONNECT: Final = 10
LIST_SECONDS_LOCAL: Final = 3
# A name that begins so is production, however the stage is called.
PRODUCTION: Final = ("prod", "live")


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
    def _connected(self) -> InboxClient:
        """The client with the right to change the inbox.

        An edited inbox.toml changes the stack on this machine, so it is read again; a connection
        to AWS stays, since another may ask for a one-time password.
        """
        return self._reconnected() if self.begun.selection.local else self.begun.client

    @cached_property
    def _reconnected(self) -> Cached[InboxClient]:
        return Cached(self._connect, seconds=RECONNECT)

    def _connect(self) -> InboxClient:
        target = self.begun.world.connect(self.begun.selection)
        return InboxClient(target, write=True, program=self.program, clock=self.clock)

    @property
    def target(self) -> Target:
        """The inbox's resources."""
        return self._connected.target

    @property
    def clock(self) -> Clock:
        """The clock."""
        return self.begun.clock

    @property
    def program(self) -> Program:
        """Makes the commands that do the same as a page."""
        return self.begun.program

    @property
    def client(self) -> InboxClient:
        """The operations on the inbox, with the right to change it only if actions are allowed."""
        return self._connected if self.write else self.reading()

    @property
    def actor(self) -> Actor:
        """The console's user, as the audit records it."""
        return self._connected.actor()

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
