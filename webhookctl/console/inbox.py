"""The inbox that the console shows, and the person who uses it."""

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from functools import cached_property
from threading import Lock
from time import monotonic
from typing import Any, Final, Generic, TypeVar

from webhook_inbox.domain.manifest import Manifest
from webhook_inbox.domain.ports import Clock, Table
from webhook_inbox.ledger.queries import Ledger
from webhookctl.checkout import known_manifest
from webhookctl.console.commands import Told, told
from webhookctl.display.evidence import Logs
from webhookctl.display.suggestions import Program
from webhookctl.following.metered import MeteredTable
from webhookctl.invocation import Invocation
from webhookctl.target import Target

# A name that begins so is production, however the stage is called.
PRODUCTION: Final = ("prod", "live")

T = TypeVar("T")


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
        call: the invocation of `webhookctl console`.
        write: whether actions are allowed.
    """

    call: Invocation
    write: bool

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

    @cached_property
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

    @cached_property
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


class Kept(Generic[T]):
    """A value that is read at most once in a period, however many pages ask for it.

    Args:
        read: reads it; an error is passed on, and nothing is kept.
        seconds: the period.
    """

    def __init__(self, read: Callable[[], T], *, seconds: float) -> None:
        self._read = read
        self._seconds = seconds
        self._lock = Lock()
        self._until = 0.0
        self._value: T | None = None

    def __call__(self) -> T:
        """Returns the value, at most `seconds` old."""
        with self._lock:
            if self._value is None or monotonic() >= self._until:
                self._value = self._read()
                self._until = monotonic() + self._seconds
            return self._value

    def forget(self) -> None:
        """Reads again at the next call: an action has changed the value."""
        self._until = 0.0
