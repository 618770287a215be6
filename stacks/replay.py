"""The function that operators invoke to enqueue runs again."""

from constructs import Construct

from stacks.boxes import Boxes
from stacks.resender import Resender


class Replay(Resender):
    """Selects runs from the ledger, resets and sends them, and clears their dead copies."""

    def __init__(self, scope: Construct, construct_id: str, boxes: Boxes) -> None:
        super().__init__(scope, construct_id, name="replay", boxes=boxes)
