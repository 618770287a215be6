"""The inbox that is examined, with what several checks read."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from threading import Lock
from typing import Any, Final, Self

from webhookctl.account import Clients
from webhookctl.display.suggestions import Program
from webhookctl.preflight.reader import Reader
from webhookctl.target import Target

# The figure of a check that the local runtime has nothing for.
LOCAL: Final = "not on this machine"


class SharedClients:
    """Makes each client once: botocore's sessions cannot make clients in several threads."""

    def __init__(self, clients: Clients) -> None:
        self._clients = clients
        self._made: dict[str, Any] = {}
        self._lock = Lock()

    def __call__(self, service: str) -> Any:
        """Returns the client of a service."""
        with self._lock:
            if service not in self._made:
                self._made[service] = self._clients(service)
            return self._made[service]


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
        clients = SharedClients(target.client)
        reader = Reader(clients)
        found = defaultdict[str, list[str]](list)
        pages = reader.pages(
            "cloudformation", "list_stack_resources", "NextToken", StackName=target.stack
        )
        for page in pages:
            for each in page["StackResourceSummaries"]:
                found[each["ResourceType"]].append(each.get("PhysicalResourceId", ""))
        resources = {kind: tuple(filter(None, ids)) for kind, ids in found.items()}
        return cls(replace(target, client=clients), reader, resources, now, program)
