"""The moments to which virtual time can jump."""

from collections.abc import Iterator
from typing import Final

from simulation.engine.world import World
from simulation.worlds.scenario import Webhook
from webhook_inbox.domain.ports import Item
from webhook_inbox.ledger.schema import RUN_PREFIX, run_key
from webhook_inbox.queue.dead_letters import NEEDLESS
from webhook_inbox.queue.message import RunMessage
from webhook_inbox.reconciler.reconciler import DLQ_MINUTE, SWEEPS, WINDOW

MINUTE: Final = 60_000
SKEW: Final = 5_000
DAY: Final = 86_400_000
WINDOW_MS: Final = tuple(int(age.total_seconds() * 1000) for age in WINDOW)
HOUR: Final = 60 * MINUTE
# The reconciler only reports runs in these states.
AT_REST: Final = frozenset({"dead_letter", "held"})
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
    for row in _runs(world):
        if row["status"] == "processing":
            yield row["claimed_until"] + SKEW + 1
        if "next_attempt_at" in row:
            yield row["next_attempt_at"]


def _of_passes(world: World) -> Iterator[int]:
    now = world.clock.ms
    runs = list(_runs(world))
    for row in runs:
        if "due_bucket" in row and row["status"] not in AT_REST:
            yield _full_minute(max(row["due_at"], now + 1))
    seen = {(row["pk"], row["sk"]): _unseen_from(row) for row in runs}
    for row in world.aws.table.rows():
        if row["sk"] == "event":
            for name in row["runs"]:
                since = seen.get((row["pk"], RUN_PREFIX + name), 0)
                if since is not None:
                    yield _next_look(row["received_at"], max(now, since))
    if any(
        _superfluous(world, message[1])
        for q in world.aws.dlqs.values()
        for message in q.snapshot()[1]
    ):
        yield at_minute(now, DLQ_MINUTE)


def _next_look(received_at: int, now: int) -> int:
    """Returns when the reconciler next checks an event of this age."""
    at = _full_minute(max(now + 1, received_at + WINDOW_MS[1]))
    at += -at % (5 * MINUTE)
    if at <= received_at + WINDOW_MS[0]:
        return at
    looks = []
    for minute, age in SWEEPS.items():
        first = received_at + int(age.total_seconds() * 1000)
        look = at_minute(max(first, now + 1) - 1, minute)
        if look <= first + HOUR:
            looks.append(look)
    return min(looks, default=now + DAY)


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


def at_minute(now: int, minute: int) -> int:
    """Returns the next time after now at this minute of the hour."""
    hour = now - now % HOUR
    at = hour + minute * MINUTE
    return at if at > now else at + HOUR
