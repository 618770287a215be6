"""Deletes DLQ messages of runs that are settled, held or replayed; a bounded pass."""

from datetime import datetime, timedelta
from typing import Final

from webhook_inbox.domain.errors import ForeignMessage
from webhook_inbox.domain.model import SETTLED, Run, Status
from webhook_inbox.domain.ports import Clock, Message, Queue, Table
from webhook_inbox.ledger.schema import run_from, run_key
from webhook_inbox.queue.message import RunMessage

LIMIT: Final = 200
# Long enough to read all of them without receiving one twice.
HIDDEN_FOR: Final = 60
BATCH: Final = 10
# These need no message: the run has ended, or its approval sends a new one.
NEEDLESS: Final = frozenset({*SETTLED, Status.HELD})


def sweep(queue: Queue, table: Table, *, clock: Clock, deadline: datetime) -> int:
    """Reads up to 200 messages of one DLQ and returns how many it deleted.

    All others are made visible again at once, so that SQS's own redrive finds them.

    Raises:
        Unavailable: queue or ledger failed; received messages are visible again after a minute.
    """
    removed, left = 0, []
    for _ in range(LIMIT // BATCH):
        messages = queue.receive(BATCH, hidden_for=HIDDEN_FOR)
        for message in messages:
            if _superfluous(message, table):
                queue.delete(message.receipt)
                removed += 1
            else:
                left.append(message)
        if not messages or clock.now() > deadline - timedelta(seconds=HIDDEN_FOR / 10):
            break
    for message in left:
        queue.hide(message.receipt, 0)
    return removed


def _superfluous(message: Message, table: Table) -> bool:
    try:
        reference = RunMessage.decode(message.body)
    except ForeignMessage:
        return False
    row = table.get(run_key(reference.source, reference.event_id, reference.handler))
    return row is not None and _replaced_or_settled(run_from(row), reference)


def _replaced_or_settled(run: Run, reference: RunMessage) -> bool:
    return run.status in NEEDLESS or run.generation > reference.generation
