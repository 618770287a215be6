"""The resources that the functions share."""

from collections.abc import Mapping
from dataclasses import dataclass

from webhook_inbox_cdk.bucket import Bodies
from webhook_inbox_cdk.bundle import Workshop
from webhook_inbox_cdk.ledger import Ledger
from webhook_inbox_cdk.queue import Lane
from webhook_inbox_cdk.secrets import Secrets

from webhook_inbox.domain.manifest import DEFAULT_LANE, Manifest


@dataclass(frozen=True, slots=True)
class Resources:
    """The stores and queues of one inbox, its manifest, and the builder of its bundles.

    `dashboard` is whether the stack has a dashboard, for which the functions write more metrics.
    """

    ledger: Ledger
    bodies: Bodies
    lanes: Mapping[str, Lane]
    queue_prefix: str
    metrics_namespace: str
    dashboard: bool
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
    def queue_url(self) -> str:
        """The URL of the default lane's work queue."""
        return self.lanes[DEFAULT_LANE].work.queue_url

    @property
    def dlq_names(self) -> dict[str, str]:
        """The names of the dead-letter queues by lane."""
        return {name: lane.dead.queue_name for name, lane in self.lanes.items()}

    @property
    def queue_urls(self) -> dict[str, str]:
        """The URLs of the work queues by lane."""
        return {name: lane.work.queue_url for name, lane in self.lanes.items()}

    @property
    def dlq_urls(self) -> dict[str, str]:
        """The URLs of the dead-letter queues by lane."""
        return {name: lane.dead.queue_url for name, lane in self.lanes.items()}
