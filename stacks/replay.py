"""The function that operators invoke to enqueue runs again."""

from constructs import Construct

from stacks.maintenance_function import Resender
from stacks.resources import Boxes


class Replay(Resender):
    """Selects runs from the ledger, resets and sends them, and clears their dead copies."""

    def __init__(self, scope: Construct, construct_id: str, boxes: Boxes) -> None:
        super().__init__(scope, construct_id, name="replay", boxes=boxes)
        # Who asked for what: a row for each replay.
        self.allow("dynamodb:PutItem", on=[boxes.table])
