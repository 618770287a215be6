"""The operations on one inbox, for programs: typed, synchronous, without output or prompts."""

import getpass
from datetime import timedelta
from functools import cached_property
from pathlib import Path
from typing import Self

from webhook_inbox.adapters.aws.account import caller_arn
from webhook_inbox.adapters.system import SystemClock, SystemRandomness
from webhook_inbox.client.alarms import StackAlarms
from webhook_inbox.client.audit import Audit
from webhook_inbox.client.budget import BoundedTable
from webhook_inbox.client.connection import Selection, connect
from webhook_inbox.client.dead_letters import DeadLetters
from webhook_inbox.client.destinations import Destinations
from webhook_inbox.client.events import Events
from webhook_inbox.client.failures import Failures
from webhook_inbox.client.handlers import Handlers
from webhook_inbox.client.health.checks import HealthChecks
from webhook_inbox.client.holds import Holds
from webhook_inbox.client.metered import MeteredTable
from webhook_inbox.client.personal import Masks
from webhook_inbox.client.rejected import RejectedDeliveries
from webhook_inbox.client.replays import Replays
from webhook_inbox.client.runs import Runs
from webhook_inbox.client.scope import Scope
from webhook_inbox.client.secrets import Secrets
from webhook_inbox.client.sources import Sources
from webhook_inbox.client.stats import Stats
from webhook_inbox.client.suggestions import Program
from webhook_inbox.client.target import Target
from webhook_inbox.client.tenants import Tenants
from webhook_inbox.domain.audit import Actor, Proof
from webhook_inbox.domain.ports import Clock, Randomness, Table


class InboxClient:
    """The operations on one inbox.

    Lists are read while they are iterated, newest first unless they say otherwise. Methods that
    change the inbox take the `Actor` who acts, and write the audit before they act.

    Every operation may raise `Unavailable` and `AccessDenied`, where AWS fails or refuses a call,
    and the errors of `client.errors` that it names.

    Args:
        target: the inbox's resources.
        write: whether changes are allowed; without it, they raise Refused.
        program: makes the commands that results and errors suggest.
        clock: the time.
        randomness: makes the tokens of rows.
        table: the ledger's table; by default the target's.
    """

    def __init__(
        self,
        target: Target,
        *,
        write: bool = False,
        program: Program | None = None,
        clock: Clock | None = None,
        randomness: Randomness | None = None,
        table: Table | None = None,
    ) -> None:
        found = target.table if table is None else table
        self._scope = Scope(
            target=target,
            table=found if write else _reading(found),
            clock=clock or SystemClock(),
            randomness=randomness or SystemRandomness(),
            program=program or Program(),
            write=write,
        )

    @classmethod
    def connect(
        cls,
        stack: str,
        *,
        profile: str | None = None,
        region: str | None = None,
        write: bool = False,
    ) -> Self:
        """Returns a client of a stack in AWS.

        Args:
            stack: the stack's name, such as "WebhookInbox-prod".
            profile: the AWS profile; by default that of the AWS command line.
            region: the AWS region; by default that of the profile.
            write: whether changes are allowed.

        Raises:
            NotFound: there is no such stack in this account and region.
            Refused: it is not a webhook-inbox stack, or was deployed by another version.
        """
        selection = Selection(stack=stack, profile=profile, region=region)
        return cls(connect(selection), write=write, program=Program().on(selection))

    @classmethod
    def connect_local(cls, directory: Path | None = None, *, write: bool = False) -> Self:
        """Returns a client of the inbox that `webhookctl dev` runs on this machine.

        Args:
            directory: a directory in its repository; by default the working directory.
            write: whether changes are allowed.

        Raises:
            Refused: no inbox runs there.
        """
        selection = Selection(local=True)
        return cls(connect(selection, directory), write=write, program=Program().on(selection))

    def reading(self, budget: timedelta | None = None) -> "InboxClient":
        """Returns a client of the same inbox that only reads.

        With a budget, the lists of this client end early: after the budget's time, and after some
        thousand rows of one partition of the ledger. A list that left out rows is `partial`.
        """
        scope = self._scope
        table = _reading(scope.table)
        return InboxClient(
            scope.target,
            program=scope.program,
            clock=scope.clock,
            randomness=scope.randomness,
            table=table if budget is None else BoundedTable(table, seconds=budget.total_seconds()),
        )

    @property
    def target(self) -> Target:
        """The inbox's resources."""
        return self._scope.target

    def masks(self, *, show_to: Actor | None, command: str, **request: str | None) -> Masks:
        """Returns the masks of personal fields; see `client.personal`."""
        return Masks(self._scope, show_to=show_to, command=command, event=None, **request)

    @property
    def program(self) -> Program:
        """Makes the commands that do the same in a terminal."""
        return self._scope.program

    @property
    def is_cut(self) -> bool:
        """Whether any list left out rows so far, since the budget is spent."""
        return self._scope.is_cut

    @cached_property
    def _caller(self) -> str:
        if self.target.local:
            return getpass.getuser()
        return caller_arn(self.target.client)

    def actor(self, on_behalf_of: str = "") -> Actor:
        """Returns the caller as the audit records it.

        The name is the caller's ARN, from STS; for an inbox on this machine, the user's name.

        Args:
            on_behalf_of: the person or system for whom the caller acts; it is not verified.
        """
        proof = Proof.LOCAL if self.target.local else Proof.STS
        return Actor(self._caller, proof, on_behalf_of)

    def close(self) -> None:
        """Closes the connections."""
        self.target.close()

    def __enter__(self) -> Self:
        """Returns the client, which the end of the block closes."""
        return self

    def __exit__(self, *_: object) -> None:
        """Closes the connections."""
        self.close()

    @cached_property
    def alarms(self) -> StackAlarms:
        """The alarms of the stack, and their notifications."""
        return StackAlarms(self._scope)

    @cached_property
    def audit(self) -> Audit:
        """The actions of operators."""
        return Audit(self._scope)

    @cached_property
    def dead_letters(self) -> DeadLetters:
        """The dead-letter queues, and the dead runs by cause."""
        return DeadLetters(self._scope)

    @cached_property
    def destinations(self) -> Destinations:
        """The destinations and their circuits."""
        return Destinations(self._scope)

    @cached_property
    def events(self) -> Events:
        """The events."""
        return Events(self._scope)

    @cached_property
    def failures(self) -> Failures:
        """The failing and dead runs, grouped by their cause."""
        return Failures(self._scope)

    @cached_property
    def handlers(self) -> Handlers:
        """The handlers and their pauses."""
        return Handlers(self._scope)

    @cached_property
    def health(self) -> HealthChecks:
        """Whether the inbox works."""
        return HealthChecks(self._scope)

    @cached_property
    def holds(self) -> Holds:
        """The runs that wait for a person's decision."""
        return Holds(self._scope)

    @cached_property
    def rejected(self) -> RejectedDeliveries:
        """The rejected deliveries."""
        return RejectedDeliveries(self._scope)

    @cached_property
    def replays(self) -> Replays:
        """The replays of dead runs, and of others."""
        return Replays(self._scope)

    @cached_property
    def runs(self) -> Runs:
        """The dead runs to close, and the jobs that runs wait for."""
        return Runs(self._scope)

    @cached_property
    def secrets(self) -> Secrets:
        """The secrets that verify deliveries and call destinations."""
        return Secrets(self._scope)

    @cached_property
    def sources(self) -> Sources:
        """The sources, and the logs of their providers."""
        return Sources(self._scope)

    @cached_property
    def stats(self) -> Stats:
        """Throughput, time to done and failures."""
        return Stats(self._scope)

    @cached_property
    def tenants(self) -> Tenants:
        """The tenants and their pauses."""
        return Tenants(self._scope)


def _reading(table: Table) -> Table:
    """Returns the table, which refuses to write and counts the price of its reads."""
    return table if isinstance(table, MeteredTable | BoundedTable) else MeteredTable(table)
