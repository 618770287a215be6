"""The shape that replay and reconciler share: find runs, change them, send them again."""

from constructs import Construct

from stacks.function import InboxFunction, Shape
from stacks.resources import Boxes
from webhook_inbox.adapters.environment import MaintenanceEnvironment


class Resender(InboxFunction):
    """Reads the ledger by its indexes, sends to every lane, and clears their dead copies."""

    def __init__(self, scope: Construct, construct_id: str, *, name: str, boxes: Boxes) -> None:
        bundle = boxes.workshop.make(name)
        environment = MaintenanceEnvironment(
            table_name=boxes.ledger.table.table_name,
            queue_urls=boxes.queue_urls,
            dlq_urls=boxes.dlq_urls,
        )
        shape = Shape(
            name=name,
            bundle=bundle,
            timeout=300,
            memory=512,
            environment=environment.variables(),
            # Lambda's own repetition, minutes later, would be a second replay; the reconciler
            # comes by every minute anyway.
            extra={"retry_attempts": 0},
        )
        super().__init__(scope, construct_id, shape)
        self._grant(boxes)

    def _grant(self, boxes: Boxes) -> None:
        self.allow(
            "dynamodb:BatchGetItem",
            "dynamodb:GetItem",
            "dynamodb:Query",
            "dynamodb:UpdateItem",
            on=[boxes.table],
        )
        self.allow("dynamodb:Query", on=[boxes.ledger.indexes])
        if boxes.manifest.serial_lanes:
            # Of an ordering key that stands still, what stopped it and is settled is cleared away.
            self.allow("dynamodb:DeleteItem", on=[boxes.table])
        self.allow("sqs:SendMessage", on=boxes.work_queues)
        self.allow(
            "sqs:ChangeMessageVisibility",
            "sqs:DeleteMessage",
            "sqs:ReceiveMessage",
            on=boxes.dead_letter_queues,
        )
