"""Deletes DLQ messages of runs that are settled, held, replayed or of a smoke test that ended."""

from collections.abc import Sequence
from datetime import datetime
from typing import Final, NamedTuple

from webhook_inbox.domain.errors import ForeignMessage
from webhook_inbox.domain.manifest import SMOKE
from webhook_inbox.domain.model import SETTLED, Status
from webhook_inbox.domain.ports import Clock, Item, Key, Message, Queue, Table
from webhook_inbox.ledger.schema import identify, run_key
from webhook_inbox.queue.message import RunMessage

# Longer than a sweep, so that none is received twice.
HIDDEN_FOR: Final = 300
BATCH: Final = 10
# These need no message: the run has ended, or its approval sends a new one.
NEEDLESS: Final = frozenset({*SETTLED, Status.HELD})


class Swept(NamedTuple):
    """The number of deleted messages, and whether the whole DLQ was read.

    `oldest` is the time at which the oldest message that stays was sent, from which SQS counts its
    retention; None where none stays.
    """

    removed: int
    finished: bool
    oldest: datetime | None = None


def sweep(queue: Queue, table: Table, *, clock: Clock, deadline: datetime) -> Swept:
    """Reads one DLQ until it is empty or time is up, and deletes the superfluous messages.

    The messages that stay are then made visible again, so that SQS's own redrive finds them. It
    reads for at most two thirds of the time until `deadline`, which is at most 5 minutes away.

    Raises:
        Unavailable: queue or ledger failed; received messages are visible again in 5 minutes.
    """
    began = clock.now()
    removed, left, finished = 0, list[Message](), False
    while clock.now() < began + (deadline - began) * 2 / 3:
        messages = queue.receive(BATCH, hidden_for=HIDDEN_FOR)
        if not messages:
            finished = True
            break
        for message, superfluous in zip(messages, _judge(messages, table), strict=True):
            if superfluous:
                queue.delete(message.receipt)
                removed += 1
            else:
                left.append(message)
    for message in left:
        if clock.now() > deadline:
            break  # The others become visible by themselves.
        queue.hide(message.receipt, 0)
    return Swept(removed, finished, min((message.sent_at for message in left), default=None))


def _judge(messages: Sequence[Message], table: Table) -> list[bool]:
    """Tells for each message whether it is superfluous.

    A run that no longer needs a message never needs it again, so a stale read deletes none early.
    """
    keys = [_run_of(message) for message in messages]
    found = table.get_many(
        [key for key, _ in filter(None, keys)], only=("pk", "sk", "status", "generation")
    )
    rows = {Key(row["pk"], row["sk"]): row for row in found}
    return [named is not None and _is_superfluous(rows.get(named[0]), *named) for named in keys]


def _run_of(message: Message) -> tuple[Key, int] | None:
    """Returns the run's key and the message's generation; None for another's message."""
    try:
        reference = RunMessage.decode(message.body)
    except ForeignMessage:
        return None
    key = run_key(reference.source, reference.event_id, reference.handler)
    return key, reference.generation


def _is_superfluous(row: Item | None, key: Key, generation: int) -> bool:
    """Tells whether a run was replaced or settled; a smoke test deletes its rows at its end."""
    if row is None:
        return identify(key.pk)[0] == SMOKE
    return row["status"] in NEEDLESS or row.get("generation", 0) > generation
