"""The inbox that is examined, with what several checks read."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Self

from webhook_inbox.client.suggestions import Program
from webhook_inbox.client.target import Target
from webhookctl.preflight.reader import Reader

# The figure of a check that the local runtime has nothing for.
LOCAL: Final = "not on this machine"


@dataclass(frozen=True, slots=True)
class Examination:
    """One inbox at one time.

    Attributes:
        target: the inbox; its clients are shared between threads.
        reader: calls AWS, and names the right that a refused call needs.
        resources: the physical ids of the stack's resources by type; of deployed ones only.
        now: the time of this machine.
        program: makes the commands of the remedies.
    """

    target: Target
    reader: Reader
    resources: Mapping[str, tuple[str, ...]]
    now: datetime
    program: Program

    @classmethod
    def of(cls, target: Target, now: datetime, program: Program) -> Self:
        """Reads the stack's resources; raises Unread where they cannot be read."""
        reader = Reader(target.client)
        found = defaultdict[str, list[str]](list)
        pages = reader.pages(
            "cloudformation", "list_stack_resources", "NextToken", StackName=target.stack
        )
        for page in pages:
            for each in page["StackResourceSummaries"]:
                found[each["ResourceType"]].append(each.get("PhysicalResourceId", ""))
        resources = {kind: tuple(filter(None, ids)) for kind, ids in found.items()}
        return cls(target, reader, resources, now, program)
