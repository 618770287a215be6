"""The calls and the billed units of each step, counted at the HTTP layer.

`tests/functions/test_billed_units.py` counts them, with bodies of 3 KB by `sample_body`, and fails
where a step differs from its constant here. `webhookctl cost` and docs/cost.md compute with them.
"""

from dataclasses import dataclass
from functools import cache
from math import ceil
from typing import Final

from webhook_inbox.ledger.payloads import Packed, pack
from webhookctl.cost.body import sample_body


@dataclass(frozen=True, slots=True)
class Step:
    """The calls of one step, and the units that AWS bills for them.

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


WRITE_UNIT: Final = 1024
READ_UNIT: Final = 4096

PUT: Final = "dynamodb:PutItem"
UPDATE: Final = "dynamodb:UpdateItem"
GET: Final = "dynamodb:GetItem"
QUERY: Final = "dynamodb:Query"
BATCH_GET: Final = "dynamodb:BatchGetItem"
SEND: Final = "sqs:SendMessageBatch"
DELETE: Final = "sqs:DeleteMessage"
PUT_OBJECT: Final = "s3:PUT"
GET_OBJECT: Final = "s3:GET"
LIST_OBJECTS: Final = "s3:GET"  # S3 lists with a GET as well, at the price of a PUT.

# -- ingest: a delivery

# The event's row and its entry in the index `by_received`; one message for each run.
NEW: Final = Step(calls=(PUT, SEND), writes=1, index_writes=1, sqs=1)
# The provider signs neither id nor time (GitHub): a row guards the content, and its hash makes the
# event's row longer.
GUARDED: Final = Step(calls=(PUT, PUT, SEND), writes=3, index_writes=1, sqs=1)
# A body of 100 KB, which S3 stores; the row is read first, so that a duplicate uploads nothing.
LARGE: Final = Step(calls=(GET, PUT_OBJECT, PUT, SEND), writes=1, index_writes=1, reads=1.0, sqs=1)
# The put is refused, and billed by the size of the row.
DUPLICATE: Final = Step(calls=(PUT,), writes=1)
# Younger than 15 minutes: the runs are looked for.
DUPLICATE_YOUNG: Final = Step(calls=(PUT, QUERY), writes=1, reads=1.0)
# Its run has not begun, and is sent again.
DUPLICATE_UNSENT: Final = Step(calls=(PUT, QUERY, SEND), writes=1, reads=1.0, sqs=1)
# A wrong signature: counted, and kept for 7 days; up to 120 a minute and source.
REJECTED: Final = Step(calls=(UPDATE, PUT), writes=3)
# Beyond that.
REJECTED_UNKEPT: Final = Step(calls=())
# The read of the secrets, once a minute in each environment of ingest.
SECRETS: Final = Step(calls=("secretsmanager:GetSecretValue",))

# -- processor: a run

# The event's row, the lease, the settlement.
RUN: Final = Step(calls=(GET, UPDATE, UPDATE), writes=2, reads=1.0)
RUN_OF_LARGE: Final = Step(calls=(GET, UPDATE, GET_OBJECT, UPDATE), writes=2, reads=1.0)
# An effect: its begin and its result.
RUN_WITH_EFFECT: Final = Step(calls=(GET, *(UPDATE,) * 4), writes=4, reads=1.0)
# Each environment reads the handler's pause every 5 seconds.
PAUSE: Final = Step(calls=(GET,), reads=1.0)
# Each environment reads the handler's entry in the list of due handlers once.
LISTED: Final = Step(calls=(GET,), reads=0.5)

# -- replays and approvals, of a run whose row has at most 1 KB

# A dead run that a replay finds by its status: it is read in the search, its entry in the due index
# moves, and its copy in the DLQ is compared with its row. Received and sent with up to nine others,
# or alone; the copy is deleted alone.
REPLAYED: Final = Step(calls=(UPDATE, DELETE), writes=1, index_writes=2, reads=1.5, sqs=3)
# The attempt of a run that is in the due index: the lease moves its entry, the settlement removes
# it. Where the inbox has destinations, the run's row is read for its reservations.
RUN_REPLAYED: Final = Step(calls=(GET, *RUN.calls), writes=2, index_writes=3, reads=2.0)
# One person's approval: the audit's row and the event's, the run with its entry in the due index,
# the message, and the result in both rows.
APPROVED: Final = Step(
    calls=(PUT, PUT, UPDATE, SEND, UPDATE, UPDATE), writes=5, index_writes=2, sqs=1
)

# -- reconciler

# A pass of each minute, without events: its cursors, the pauses, the handlers and the index of
# received events; and for each handler the eight partitions of the due index.
PASS: Final = Step(calls=(*(QUERY,) * 6, GET, BATCH_GET, UPDATE, UPDATE), writes=2, reads=9.0)
PASS_OF_HANDLER: Final = Step(calls=(QUERY,) * 8, reads=4.0)
# Every fifth pass: the second look at the events, and a lane's length and oldest message.
FIFTH_PASS: Final = Step(
    calls=(*(QUERY,) * 4, "sqs:GetQueueAttributes", "monitoring:GetMetricStatistics"),
    reads=2.0,
    sqs=1,
)
# The looks at each event: its entry in the index, and the row of each of its runs.
LOOKS: Final = 2
LOOK_AT_RUN: Final = 0.5
# A payload whose source's `retention` has passed: the event with its runs; the event's row without
# its body, and its entry; its conflicts, its objects, and the event's rows again.
ERASED: Final = Step(
    calls=(*(QUERY,) * 3, UPDATE, LIST_OBJECTS), writes=1, index_writes=1, reads=3.0
)

# -- bytes

# An event's row without its body, its entry in `by_received`, a run, an effect.
EVENT_BYTES: Final = 393
ENTRY_BYTES: Final = 127
RUN_BYTES: Final = 456
EFFECT_BYTES: Final = 488
# The name of a further run in the event's row, of 20 characters: an assumption.
NAMED_RUN: Final = 21
# The lines, and their bytes, that the functions write for a delivery, a run and a pass.
DELIVERY_LOG: Final = (1, 294)
REJECTED_LOG: Final = (1, 441)
RUN_LOG: Final = (1, 407)
PASS_LOG: Final = (1, 396)
# The bytes of their metrics in the lines, and the metrics in CloudWatch that new events and
# finished runs write where the stack has a dashboard: of the inbox, of each source, of each
# handler. Without one, they write none.
DELIVERY_METRICS: Final = 333
RUN_METRICS: Final = 383
METRICS: Final = 4
METRICS_OF_PASS: Final = 0
METRICS_OF_SOURCE: Final = 1
METRICS_OF_HANDLER: Final = 1

# -- CPU, in milliseconds of one vCPU

# A new event of Stripe (bench/results.json, between 1 and 10 KB).
DELIVERY_CPU: Final = 0.83
# A run whose handler returns at once, and one with an effect: `python -m bench.processor` of
# 2026-11-23, medians of three processes on two shared cores.
RUN_CPU: Final = 7.6
RUN_WITH_EFFECT_CPU: Final = 10.1


@cache
def packed(size: int) -> Packed:
    """Returns how the inbox stores a body of so many bytes, which compresses as `sample_body`."""
    return pack(sample_body(size), prefix="bodies/sample/")


def row_bytes(size: int, handlers: int = 1) -> int:
    """Returns the size of an event's row with such a body and so many runs."""
    body = len(packed(size).attributes.get("body", b""))
    return EVENT_BYTES + (handlers - 1) * NAMED_RUN + body


def event_writes(size: int, handlers: int = 1) -> int:
    """Returns the table's write units of a new event with such a body and so many runs."""
    return ceil(row_bytes(size, handlers) / WRITE_UNIT)
