"""The calls and the billed units of each step, counted at the HTTP layer.

`tests/functions/test_billed_units.py` counts them and fails where they differ.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Step:
    """What AWS bills for one step.

    Attributes:
        calls: the requests to AWS, as service and operation, in their order.
        writes: DynamoDB's write units of the table.
        index_writes: those of its indexes.
        reads: DynamoDB's read units.
        sqs: SQS's requests.
    """

    calls: tuple[str, ...]
    writes: int = 0
    index_writes: int = 0
    reads: float = 0.0
    sqs: int = 0
