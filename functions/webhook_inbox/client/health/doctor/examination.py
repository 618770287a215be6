"""The inbox that is examined, with what several checks read."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Self

from webhook_inbox.adapters.aws.reader import Reader, Unread
from webhook_inbox.adapters.aws.stack_facts import StackFacts
from webhook_inbox.client.scope import Scope
from webhook_inbox.client.suggestions import Program
from webhook_inbox.client.target import Target
from webhook_inbox.configuration.inbox_toml import Configuration

# The figure of a check that the local runtime has nothing for.
LOCAL: Final = "not on this machine"


@dataclass(frozen=True, slots=True)
class Examination:
    """One inbox at one time.

    Attributes:
        scope: the inbox; its clients are shared between threads.
        stack: reads the stack, and names the right that a refused call needs.
        resources: the physical ids of the stack's resources by type; of deployed ones only.
        now: the time of this machine.
        configuration: that of a checkout, to compare with the deployed one.
    """

    scope: Scope
    stack: StackFacts
    resources: Mapping[str, tuple[str, ...]]
    now: datetime
    configuration: Configuration | None

    @classmethod
    def of(cls, scope: Scope, configuration: Configuration | None) -> Self:
        """Reads the stack's resources; raises Unread where they cannot be read."""
        stack = StackFacts(Reader(scope.target.client), scope.target.stack)
        try:
            resources = stack.resources()
        except Unread as error:
            raise Unread(f"the stack's resources cannot be listed: {error}") from error
        return cls(scope, stack, resources, scope.clock.now(), configuration)

    @property
    def target(self) -> Target:
        """The inbox's resources; the table is that of the scope."""
        return self.scope.target

    @property
    def program(self) -> Program:
        """Makes the commands of the remedies."""
        return self.scope.program
