"""The moments to which virtual time can jump."""

from collections.abc import Iterator
from typing import Final

from simulation.engine.world import World
from simulation.worlds.scenario import Webhook
from webhook_inbox.domain.ports import Item
from webhook_inbox.ledger.erasure import DELIVERY_LIFE
from webhook_inbox.ledger.schema import RUN_PREFIX, run_key
from webhook_inbox.queue.dead_letters import NEEDLESS
from webhook_inbox.queue.message import RunMessage
from webhook_inbox.reconciler.received import CURSORS, FIRST_LOOK, SECOND_LOOK
from webhook_inbox.reconciler.reconciler import SWEEP_INTERVAL, SWEEPS

MINUTE: Final = 60_000
SKEW: Final = 5_000
FIRST_MS: Final = int(FIRST_LOOK.total_seconds() * 1000)
SECOND_MS: Final = int(SECOND_LOOK.total_seconds() * 1000)
SWEEP_MS: Final = int(SWEEP_INTERVAL.total_seconds() * 1000)
# The reconciler only reports runs in these states, unless people decide about a held run.
AT_REST: Final = frozenset({"dead_letter", "held"})
# The age from which no delivery may store a payload of an erased event.
DELIVERY_MS: Final = int(DELIVERY_LIFE.total_seconds() * 1000)
# The age from which a guard without an event can be taken over.
SETTLING_MS: Final = 30_000


def next_moment(world: World) -> int | None:
    """Returns the next time at which a new choice becomes possible, in ms."""
    now = world.clock.ms
    times = (*_of_jobs(world), *_of_messages(world), *_of_rows(world), *_of_passes(world))
    return min((at for at in times if at > now), default=None)


def next_pass(world: World) -> int | None:
    """Returns the next full minute in which the reconciler has work, in ms."""
    now = world.clock.ms
    return min((at for at in _of_passes(world) if at > now), default=None)


def unacknowledged(world: World) -> list[Webhook]:
    """Returns the sent webhooks whose senders will retry."""
    return [
        webhook
        for webhook in world.scenario.webhooks
        if webhook.retries
        and webhook.name in world.tries
        and world.answered.get(webhook.name, 500) >= 500
    ]


def quiet(world: World) -> bool:
    """Returns whether the world is idle until a person acts."""
    if world.jobs or any(map(len, world.aws.queues.values())):
        return False
    return next_pass(world) is None


def _of_jobs(world: World) -> Iterator[int]:
    for job in world.jobs.values():
        yield job.wakes
        yield job.ends


def _of_messages(world: World) -> Iterator[int]:
    for queue in world.aws.queues.values():
        yield from (message[3] for message in queue.snapshot()[1])


def _of_rows(world: World) -> Iterator[int]:
    for row in world.aws.table.rows():
        if row["sk"] == "guard":
            yield row["written_at"] + SETTLING_MS
        if row.get("state") == "open":
            yield row["until"]
        if "erased_at" in row:
            yield row["received_at"] + DELIVERY_MS
    for row in _runs(world):
        if row["status"] == "processing":
            yield row["claimed_until"] + SKEW + 1
        if "next_attempt_at" in row:
            yield row["next_attempt_at"]


def _of_passes(world: World) -> Iterator[int]:
    now = world.clock.ms
    runs = list(_runs(world))
    for row in runs:
        wakes = "wake_at" in row.get("held", {})
        if "due_bucket" in row and (wakes or row["status"] not in AT_REST):
            yield _full_minute(max(row["due_at"], now + 1))
    seen = {(row["pk"], row["sk"]): _unseen_from(row) for row in runs}
    for row in world.aws.table.rows():
        if row["sk"] == "event":
            for name in row["runs"]:
                since = seen.get((row["pk"], RUN_PREFIX + name), 0)
                look = None if since is None else _next_look(world, row)
                if look is not None:
                    yield _full_minute(max(look, since or 0, now + 1))
    if any(
        _superfluous(world, message[1])
        for q in world.aws.dlqs.values()
        for message in q.snapshot()[1]
    ):
        yield next_sweep(world)


def next_sweep(world: World) -> int:
    """Returns the time of the next pass that sweeps the DLQs."""
    last = (world.aws.table.row(SWEEPS) or {}).get("swept_at", 0)
    return _full_minute(max(world.clock.ms + 1, last + SWEEP_MS))


def _next_look(world: World, event: Item) -> int | None:
    """Returns when the reconciler reads an event next, None after the second look."""
    at: int = event["received_at"]
    cursors = world.aws.table.row(CURSORS) or {}
    shard = event["received_bucket"].rpartition("#")[2]
    if cursors.get("first", {}).get(shard, 0) < at:
        return at + FIRST_MS
    # A lane whose backlog is older than the second look has a cursor of its own.
    positions = [cursors.get("second", {}), *cursors.get("lanes", {}).values()]
    if any(each.get(shard, 0) < at for each in positions):
        return at + SECOND_MS
    return None


def _unseen_from(run: Item) -> int | None:
    """Returns the time from which only a check of the event finds a run, None if never."""
    first_attempt = run["status"] == "processing" and "due_bucket" not in run
    return run["claimed_until"] + SKEW if first_attempt else None


def _superfluous(world: World, text: str) -> bool:
    reference = RunMessage.decode(text)
    row = world.aws.table.row(run_key(reference.source, reference.event_id, reference.handler))
    return row is not None and (
        row["status"] in NEEDLESS or row.get("generation", 0) > reference.generation
    )


def _runs(world: World) -> Iterator[Item]:
    return (row for row in world.aws.table.rows() if row["sk"].startswith(RUN_PREFIX))


def _full_minute(at: int) -> int:
    return at + -at % MINUTE
