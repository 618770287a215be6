"""The function that operators invoke to enqueue runs again."""

from constructs import Construct

from stacks.boxes import Boxes
from stacks.function import InboxFunction, Shape
from webhook_inbox.adapters.environment import ReplayEnvironment


class Replay(InboxFunction):
    """Selects runs from the ledger, resets and sends them, and clears their dead copies."""

    def __init__(self, scope: Construct, construct_id: str, boxes: Boxes) -> None:
        bundle = boxes.workshop.make("replay")
        environment = ReplayEnvironment(
            table_name=boxes.ledger.table.table_name,
            queue_urls=boxes.queue_urls,
            dlq_urls=boxes.dlq_urls,
            code_version=bundle.version,
        )
        shape = Shape(
            name="replay",
            bundle=bundle,
            timeout=300,
            memory=512,
            environment=environment.variables(),
            # A repetition made by Lambda minutes later would be a second replay.
            extra={"retry_attempts": 0},
        )
        super().__init__(scope, construct_id, shape)
        allow_sending_again(self, boxes)


def allow_sending_again(function: InboxFunction, boxes: Boxes) -> None:
    """Grants what replay and reconciler share: find runs, change them, send, clear the dead."""
    function.allow(
        "dynamodb:BatchGetItem",
        "dynamodb:GetItem",
        "dynamodb:PutItem",
        "dynamodb:Query",
        "dynamodb:UpdateItem",
        on=[boxes.table],
    )
    function.allow("dynamodb:Query", on=[boxes.ledger.indexes])
    function.allow("sqs:SendMessage", on=boxes.work_queues)
    function.allow(
        "sqs:ChangeMessageVisibility",
        "sqs:DeleteMessage",
        "sqs:GetQueueAttributes",
        "sqs:ReceiveMessage",
        on=boxes.dead_letter_queues,
    )
