"""Checks the order of serial runs, and that the queue holds none behind one that waits."""

from simulation.engine.world import World
from simulation.invariants.observer import FINISHED, RunName, must, named
from webhook_inbox.ledger.schema import event_key, run_key
from webhook_inbox.queue.message import RunMessage


def check_fifo_order(world: World, run: RunName) -> None:
    """Checks that no other run of the key is in progress and every earlier one has finished.

    An event is earlier if it was acknowledged before this one was first sent, unless it is held or
    SQS lost its message, as at the end of its retention of 14 days.
    """
    source, event_id, handler = run
    spec = world.deployment.manifest.handlers.get(handler)
    ordering_key = _ordering_key(world, run)
    if spec is None or not spec.serial or not ordering_key:
        return
    # The group of a message that SQS has lost is free: the order holds for the others.
    lost = world.observer.lost
    at_work = {job.handling for job in world.jobs.values() if job.handling} - lost
    others = [other for other in at_work if other != run and other[2] == handler]
    must(
        "order",
        all(_ordering_key(world, other) != ordering_key for other in others),
        f"{run} began while {others} were in progress",
    )
    for event in world.observer.earlier.get((source, event_id), frozenset()):
        if (world.aws.table.row(event_key(*event)) or {}).get("held"):
            continue  # It runs when a person has decided, and blocks nothing until then.
        before = (*event, handler)
        other_key = _ordering_key(world, before) != ordering_key
        if event == (source, event_id) or other_key or before in lost:
            continue
        row = world.aws.table.row(run_key(*before)) or {}
        # Without `on_dead = "block"` a run that died once has lost its position.
        over = row.get("status") in FINISHED or (not spec.blocks and "dead_at" in row)
        must("order", over, f"{run} began before {before}, which is {row.get('status')}")


def check_queue_behind(world: World) -> None:
    """Checks that an idle queue has no message behind a run that waits without one.

    A FIFO queue finds available groups only among its first 120,000 messages.
    """
    if not world.serial or any(queue.visible() for queue in world.aws.queues.values()):
        return
    waits: set[tuple[str, str]] = set()
    moves: set[tuple[str, str]] = set()
    for row in world.aws.table.rows():
        if "ordering_key" not in row or row["status"] in FINISHED:
            continue
        place = row["handler"], row["ordering_key"]
        if row.get("parked") or row["status"] == "held" or row.get("blocking"):
            waits.add(place)
        elif row["status"] != "dead_letter":
            moves.add(place)
    troubled = {(run[2], _ordering_key(world, run)) for run in world.observer.troubled}
    for lane in world.serial:
        for fields in world.aws.queues[lane].snapshot()[1]:
            run = named(RunMessage.decode(fields[1]))
            place = run[2], _ordering_key(world, run)
            # A worker that was killed leaves its message hidden, and others behind it.
            free = place in troubled or place in moves or place not in waits
            must("order", free, f"{run} is in the queue, behind a run that waits without a message")


def _ordering_key(world: World, run: RunName) -> str:
    row = world.aws.table.row(event_key(run[0], run[1])) or {}
    return str(row.get("ordering_keys", {}).get(run[2], ""))
