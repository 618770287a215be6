"""What has to hold when a message leaves its queue: nobody but it may have been its run's hope."""

from contextlib import suppress
from typing import Final

from simulation.engine.world import World
from simulation.invariants.observer import must, named
from webhook_inbox.domain.errors import Unavailable
from webhook_inbox.domain.ports import Item, Message
from webhook_inbox.queue.message import RunMessage

# What waits for a message; all else has ended, or waits for a person or the reconciler, which
# watches what is pending in case whoever made it so died before the message was sent.
NEEDS_MESSAGE: Final = frozenset({"processing", "failed", "deferred"})


def deleted(world: World, lane: str, message: Message) -> None:
    """A worker is done with its message and SQS deletes it."""
    queue = world.aws.queues[lane]
    present = any(fields[0] == message.id for fields in queue.snapshot()[1])
    # A FIFO queue deletes nothing that is visible again; nobody hears of it, and it comes back.
    with suppress(Unavailable):
        queue.delete(message.receipt)
    gone = present and all(fields[0] != message.id for fields in queue.snapshot()[1])
    reference = RunMessage.decode(message.body)
    run, row = named(reference), world.row_of(reference)
    if not gone or run in world.observer.lost or not _waits(row):
        return
    must("G1", in_flight(world, reference, row or {}), f"{run} is left without a message: {row}")


def moved_to_dlq(world: World, reference: RunMessage) -> None:
    """SQS moves a message to the DLQ, having shown it too often."""
    run, row = named(reference), world.row_of(reference)
    alive = _waits(row) and (row or {}).get("generation", 0) == reference.generation
    must(
        "G1", not alive or run in world.observer.troubled, f"{run} has attempts left and no message"
    )


def _waits(row: Item | None) -> bool:
    return row is None or (row["status"] in NEEDS_MESSAGE and not row.get("parked"))


def in_flight(world: World, reference: RunMessage, row: Item) -> bool:
    """Tells whether a message with the run's generation is in a queue, or on its way there.

    The message that claimed the run last does as well: it sends the copy that is missing.
    """
    expected = (*named(reference), row.get("generation", 0))
    waiting = [m for queue in world.aws.queues.values() for m in queue.snapshot()[1]]
    if any(fields[0] == row.get("message_id") for fields in waiting):
        return True
    texts = [fields[1] for fields in waiting]
    texts += [m.body for call in world.late if call.method == "send" for m in call.args[0]]
    sent = (RunMessage.decode(text) for text in texts)
    return any((*named(reference), reference.generation) == expected for reference in sent)
