"""Checks which messages leave their queue, and which stay there."""

from contextlib import suppress
from typing import Final

from simulation.engine.world import World
from simulation.invariants.observer import must, named
from webhook_inbox.domain.errors import Unavailable
from webhook_inbox.domain.ports import Item, Message
from webhook_inbox.domain.timestamps import to_ms
from webhook_inbox.queue.message import RunMessage

# Runs in these states need a message. All others have ended or wait for a person or the reconciler,
# which re-sends pending runs in case the writer died before it sent the message.
NEEDS_MESSAGE: Final = frozenset({"processing", "failed", "deferred"})


def deleted(world: World, lane: str, message: Message) -> None:
    """Deletes a message after its invocation and checks that its run has another one."""
    queue = world.aws.queues[lane]
    present = any(fields[0] == message.id for fields in queue.snapshot()[1])
    # A FIFO queue rejects the deletion of a message that is visible again; it is received again.
    with suppress(Unavailable):
        queue.delete(message.receipt)
    gone = present and all(fields[0] != message.id for fields in queue.snapshot()[1])
    reference = RunMessage.decode(message.body)
    run, row = named(reference), world.row_of(reference)
    if not gone or run in world.observer.lost or not _waits(row):
        return
    must("G1", in_flight(world, reference, row or {}), f"{run} is left without a message: {row}")


def kept(world: World, lane: str, message: Message) -> None:
    """Checks that a message that stays in a standard lane does not implement its run's wait."""
    reference = RunMessage.decode(message.body)
    row = world.row_of(reference) or {}
    own = row.get("message_id") == message.id and _is_current(row, reference)
    waits = own and row["status"] in {"failed", "deferred"}
    hides = waits and lane not in world.serial
    must("receives", not hides, f"{named(reference)} waits behind its message, which is hidden")


def is_dead_for(world: World, lane: str, message: Message) -> bool:
    """Returns whether a message that is received again belongs to a run that has died."""
    if lane in world.serial or message.receive_count == 1:
        return False
    reference = RunMessage.decode(message.body)
    row = world.row_of(reference) or {}
    died = row.get("status") == "dead_letter" and _is_current(row, reference)
    return bool(died and row["dead_at"] >= to_ms(message.sent_at))


def moved_to_dlq(world: World, reference: RunMessage) -> None:
    """Checks the run of a message that SQS moved to the DLQ by its receive count."""
    run, row = named(reference), world.row_of(reference)
    # In a FIFO lane any message represents its run, even under an old generation.
    current = _is_current(row or {}, reference)
    alive = _waits(row) and (current or "ordering_key" in (row or {}))
    must(
        "G1", not alive or run in world.observer.troubled, f"{run} has attempts left but no message"
    )


def _is_current(row: Item, reference: RunMessage) -> bool:
    return bool(row.get("generation", 0) == reference.generation)


def _waits(row: Item | None) -> bool:
    return row is None or (row["status"] in NEEDS_MESSAGE and not row.get("parked"))


def in_flight(world: World, reference: RunMessage, row: Item) -> bool:
    """Returns whether a message with the run's generation is in a queue or a late send.

    The message that acquired the run last counts too: it sends the missing copy.
    """
    expected = (*named(reference), row.get("generation", 0))
    waiting = [m for queue in world.aws.queues.values() for m in queue.snapshot()[1]]
    if any(fields[0] == row.get("message_id") for fields in waiting):
        return True
    texts = [fields[1] for fields in waiting]
    texts += [m.body for call in world.late if call.method == "send" for m in call.args[0]]
    sent = (RunMessage.decode(text) for text in texts)
    return any((*named(reference), reference.generation) == expected for reference in sent)
