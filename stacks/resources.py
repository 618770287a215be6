"""What the functions work with, handed from the construct to each of them."""

from collections.abc import Mapping
from dataclasses import dataclass

from stacks.bucket import Bodies
from stacks.bundle import Workshop
from stacks.ledger import Ledger
from stacks.queue import Lane
from stacks.secrets import Secrets
from webhook_inbox import providers
from webhook_inbox.domain.manifest import Manifest


@dataclass(frozen=True, slots=True)
class Boxes:
    """Where the inbox keeps things, and what its functions are made of."""

    ledger: Ledger
    bodies: Bodies
    lanes: Mapping[str, Lane]
    secrets: Secrets
    manifest: Manifest
    workshop: Workshop

    @property
    def table(self) -> str:
        """The table's ARN."""
        return self.ledger.table.table_arn

    @property
    def work_queues(self) -> list[str]:
        """The ARNs of the work queues."""
        return [lane.work.queue_arn for lane in self.lanes.values()]

    @property
    def dead_letter_queues(self) -> list[str]:
        """The ARNs of the dead-letter queues."""
        return [lane.dead.queue_arn for lane in self.lanes.values()]

    @property
    def queue_urls(self) -> dict[str, str]:
        """The addresses of the work queues by lane."""
        return {name: lane.work.queue_url for name, lane in self.lanes.items()}

    @property
    def dlq_urls(self) -> dict[str, str]:
        """The addresses of the dead-letter queues by lane."""
        return {name: lane.dead.queue_url for name, lane in self.lanes.items()}

    @property
    def source_secrets(self) -> frozenset[str]:
        """The names of the secrets that deliveries are verified with."""
        return frozenset(source.secret for source in self.manifest.sources.values())

    @property
    def delivered_secrets(self) -> frozenset[str]:
        """The names of those that providers deliver: ingest stores them, and no others."""
        sources = self.manifest.sources.values()
        return frozenset(s.secret for s in sources if providers.load(s).offer is not None)

    @property
    def handler_secrets(self) -> frozenset[str]:
        """The names of all other secrets: destinations' and handlers'."""
        return frozenset(self.manifest.secrets) - self.source_secrets
