"""Invocations: how they end, and what becomes of their messages."""

from typing import Final

from simulation.engine.jobs import Job
from simulation.engine.stepping import Crashed
from simulation.engine.world import World
from simulation.invariants.message_deletion import deleted
from simulation.invariants.observer import Violation, must
from simulation.worlds.scenario import Letter
from webhook_inbox.domain.ports import Item
from webhook_inbox.ingest.receipt import IngestOutcome
from webhook_inbox.ledger.schema import event_key, run_key

# Of events that are older the reconciler takes care, not a duplicate.
YOUNG_MS: Final = 15 * 60_000


def end(world: World, reservation: str, job: Job, how: str) -> None:
    """An invocation ends; `how` is "undeleted" where its message stays."""
    del world.jobs[reservation]
    result = job.place.result
    if isinstance(result, Crashed):
        raise Violation("G1", f"{reservation} raised {result.error!r}")
    if job.letter is not None:
        world.answered[job.letter.name] = result.status
        row = world.aws.table.row(event_key(*job.letter.event))
        world.truth.answered(job.letter, result, row)
        if row is not None and result.outcome is IngestOutcome.DUPLICATE:
            _check_healed(world, job.letter, row)
    elif job.message is not None and not result.outcome.keeps_message:
        if how == "ok":
            deleted(world, job.lane, job.message)
        else:
            world.touch(job)


def _check_healed(world: World, letter: Letter, event: Item) -> None:
    """Checks that a duplicate has sent what was never enqueued (G5)."""
    if event["received_at"] <= world.clock.ms - YOUNG_MS:
        return
    for name in event["runs"]:
        begun = world.aws.table.row(run_key(*letter.event, name)) is not None
        sent = world.truth.sends.get((*letter.event, name), 0) > 0
        must("G5", begun or sent, f"{letter.name} was a duplicate and {name} is not sent")
