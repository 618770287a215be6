"""Ends invocations and deletes or returns their messages."""

from typing import Final

from simulation.engine.jobs import Job
from simulation.engine.stepping import Crashed
from simulation.engine.world import World
from simulation.invariants.erasure import check_emptied
from simulation.invariants.message_deletion import deleted, kept
from simulation.invariants.observer import Violation, must
from simulation.invariants.transitions import check_texts
from simulation.worlds.scenario import Webhook
from webhook_inbox.domain.ports import Item
from webhook_inbox.ingest.receipt import STORED, IngestOutcome
from webhook_inbox.ledger.erasure import Erasure
from webhook_inbox.ledger.schema import EFFECT_PREFIX, RUN_PREFIX, event_key, run_key

# A duplicate re-sends runs of younger events only; the reconciler covers older ones.
YOUNG_MS: Final = 15 * 60_000


def end(world: World, slot: str, job: Job, how: str) -> None:
    """Ends an invocation; `how` is "undeleted" if the deletion of its message fails."""
    del world.jobs[slot]
    result = job.node.result
    if isinstance(result, Crashed):
        raise Violation("G1", f"{slot} raised {result.error!r}")
    if job.erases and isinstance(result, Erasure):
        _erased(world, job.erases, result)
    if job.webhook is not None:
        world.answered[job.webhook.name] = result.status
        row = world.aws.table.row(event_key(*job.webhook.event))
        world.observer.answered(job.webhook, result, row)
        if row is not None and result.outcome in STORED - {IngestOutcome.ACCEPTED}:
            _check_sent(world, job.webhook, row)
    elif job.message is not None and result.keeps_message:
        kept(world, job.lane, job.message)
    elif job.message is not None:
        if how == "ok":
            deleted(world, job.lane, job.message)
        else:
            world.mark_troubled(job)


def _erased(world: World, event: tuple[str, str], result: Erasure) -> None:
    """Notes what an erasure reported, and checks that it is true."""
    if not result.unfinished:
        world.observer.cleared.add(event)
        for stored in world.aws.table.rows():
            if stored["sk"].startswith((RUN_PREFIX, EFFECT_PREFIX)):
                check_texts(world.observer, stored)
    if result.arriving_until is None:
        world.observer.emptied.add(event)
        check_emptied(world.observer, world.aws.table.rows(), world.aws.blobs)


def _check_sent(world: World, webhook: Webhook, event: Item) -> None:
    """Checks that a duplicate enqueued, or held, the runs that were not enqueued before (G5)."""
    if event["received_at"] <= world.clock.ms - YOUNG_MS:
        return
    for name in event["runs"]:
        begun = world.aws.table.row(run_key(*webhook.event, name)) is not None
        sent = world.observer.sends.get((*webhook.event, name), 0) > 0
        must("G6", begun or "held" not in event, f"{webhook.name} is held and {name} has no row")
        must("G5", begun or sent, f"{webhook.name} was a duplicate and {name} was not sent")
