"""The inbox that the console shows, and the person who uses it."""

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from functools import cached_property, partial
from typing import Any, Final

from webhook_inbox.domain.manifest import Manifest
from webhook_inbox.domain.ports import Clock, Table
from webhook_inbox.ledger.queries import Ledger
from webhookctl.checkout import known_manifest
from webhookctl.console.commands import Told, told
from webhookctl.display.evidence import Logs
from webhookctl.display.suggestions import Program
from webhookctl.following.metered import MeteredTable
from webhookctl.invocation import Invocation
from webhookctl.recent import Recent
from webhookctl.target import Target

# Seconds.
RECONNECT: Final = 10
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
    def _reconnected(self) -> Recent[Invocation]:
        begun = self.begun
        # Without the line that a command prints about its target.
        again = partial(Invocation, begun.world, begun.selection, printer=Told())
        return Recent(again, seconds=RECONNECT)

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

    def read(self, command: Callable[..., None], **values: Any) -> Told:
        """Returns what a command prints that only reads; its reads are counted, writes refused."""
        return told(self._reading, command, **values)

    def act(self, command: Callable[..., None], **values: Any) -> Told:
        """Returns what a command prints that acts; the audit has the console's user."""
        return told(self.call, command, **values)

    @property
    def _reading(self) -> Invocation:
        target = metered(self.target, self.table)
        return Invocation(replace(self.call.world, connect=lambda _: target), self.call.selection)

    @cached_property
    def table(self) -> MeteredTable:
        """The ledger's table for pages: it refuses writes, and counts the price of its reads."""
        return MeteredTable(self.target.table)

    @property
    def written_table(self) -> Table:
        """The ledger's table for actions."""
        return self.target.table

    @property
    def ledger(self) -> Ledger:
        """The ledger for pages, without bodies."""
        return Ledger(table=self.table)

    @property
    def ledger_with_bodies(self) -> Ledger:
        """The ledger for the page of one body."""
        return Ledger(table=self.table, blobs=self.target.blobs)

    @property
    def manifest(self) -> Manifest:
        """The deployed sources and handlers; empty where they cannot be read."""
        return known_manifest(self.target)

    @property
    def logs(self) -> Logs:
        """Makes the links to log lines."""
        return Logs(self.target.log_groups, self.target.region)

    @property
    def is_production(self) -> bool:
        """Whether the pages are marked in red."""
        return not self.target.local and self.target.stage.lower().startswith(PRODUCTION)

    @property
    def refusal(self) -> str:
        """Why no action is possible, "" if actions are."""
        return "" if self.write else "read-only: start `webhookctl console` with --write"

    @cached_property
    def line(self) -> str:
        """The stack, its account and its region."""
        return self.target.line
