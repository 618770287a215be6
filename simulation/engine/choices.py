"""The choices that a world offers."""

from collections.abc import Iterator
from typing import Final

from simulation.engine.jobs import Job
from simulation.engine.stepping import Call
from simulation.engine.virtual_time import quiet, unacknowledged
from simulation.engine.world import DAY_MS, World, all_ended
from webhook_inbox.domain.ports import Item
from webhook_inbox.handlers.approvals.request_row import Word
from webhook_inbox.ledger.pauses import TENANT_PREFIX
from webhook_inbox.ledger.schema import APPROVAL_PREFIX

# The kind of choice, its subject, and its variant.
Choice = tuple[str, ...]

# The longest absence of the reconciler; its slow sweep covers older events.
TROUBLED_MS: Final = 3 * DAY_MS
WRITES: Final = frozenset({"put", "update", "delete", "send", "hide"})
LAGGING: Final = frozenset({"query_index", "get_many"})


def choices(world: World) -> Iterator[Choice]:
    """Yields every choice, those without a fault first."""
    for slot, job in world.jobs.items():
        yield from _of_job(world, slot, job)
    yield from _of_senders(world)
    yield from _of_queues(world)
    for number in range(len(world.late)):
        yield ("arrives", str(number))
    left = world.left
    if left.jumps:
        yield ("time",)
    yield from _of_age(world)
    if left.passes and world.free("reconciler", 2):
        yield ("reconciles",)
    if left.replays and world.free("replay", 2):
        yield from (("replays", str(n)) for n in range(len(world.scenario.requests)))
    if left.decisions and world.free("person", 2):
        yield from _of_person(world)
    yield from _of_controls(world)
    if left.redrives:
        yield from (("redrives", lane) for lane, dlq in world.aws.dlqs.items() if dlq.visible())
    if left.deployments:
        others = (d for d in world.scenario.deployments if d is not world.deployment)
        yield from (("deploys", other.name) for other in others)


def _of_controls(world: World) -> Iterator[Choice]:
    """Yields what a person may pause, resume, open, close or erase."""
    left = world.left
    if left.pauses and world.free("person", 2):
        tenants = (TENANT_PREFIX + each.tenant for each in world.scenario.webhooks if each.tenant)
        for name in dict.fromkeys((*world.limits, *tenants)):
            yield ("resumes" if name in world.observer.paused else "pauses", name)
    if left.openings and world.free("person", 2):
        for name in world.deployment.manifest.destinations:
            yield ("closes" if world.opened_by_hand(name) else "opens", name)
    if left.erasures and world.free("person", 2):
        yield from (("erases", *event) for event in sorted(world.observer.contents))


def _of_job(world: World, slot: str, job: Job) -> Iterator[Choice]:
    call = job.node.call
    if call is not None and call.method == "begin":
        yield from _outcomes(world, slot, call)
    elif job.wakes <= world.clock.ms and not _waits_for_batch(world, job):
        yield ("step", slot, "ok")
        if world.left.faults:
            yield from (("step", slot, how) for how in _faults(world, job, call))
    if world.left.faults and "killed" in world.scenario.faults:
        yield ("killed", slot)
    if world.left.faults and _may_freeze(world, job):
        yield ("freezes", slot)


def _waits_for_batch(world: World, job: Job) -> bool:
    """Returns whether a run has ended and others of its batch have not: they have one response."""
    ended = job.node.call is None and job.kind == "processor"
    return ended and world.scenario.together and not all_ended(world)


def _may_freeze(world: World, job: Job) -> bool:
    """Returns whether a worker may be frozen now and resume after its lease."""
    kinds = world.scenario.faults
    return "frozen" in kinds and job.lease != "" and not job.overdue


def _outcomes(world: World, slot: str, call: Call) -> Iterator[Choice]:
    handler = call.args[0]
    if handler in world.scenario.always:
        yield ("handles", slot, "always")
        return
    yield ("handles", slot, "well")
    if world.left.failures:
        for number in range(len(world.scenario.outcomes.get(handler, ()))):
            yield ("handles", slot, str(number))


def _faults(world: World, job: Job, call: Call | None) -> Iterator[str]:
    kinds = world.scenario.faults
    if call is None:
        if job.kind == "processor" and not job.node.result.keeps_message:
            yield "undeleted"
        return
    if call.port == "clock":
        return
    if "before" in kinds:
        yield "before"
    if call.method in WRITES or call.port in {"sink", "chat"}:
        yield from (kind for kind in ("after", "delayed") if kind in kinds)
    if call.method in WRITES and "twice" in kinds:
        yield "twice"
    if call.method == "send" and "refused" in kinds:
        yield "refused"
    lagging = call.method in LAGGING or ("consistent", False) in call.options
    if lagging and world.scenario.lag:
        yield "stale"


def _of_person(world: World) -> Iterator[Choice]:
    for row in world.aws.table.rows():
        if row.get("status") == "dead_letter" and row.get("blocking"):
            yield ("decides", "skip", row["pk"], row["sk"])
        if row["sk"].startswith(APPROVAL_PREFIX):
            yield from _of_request(world, row)
        if row.get("status") == "held":
            kinds = ["approve", "deny"]
            if row["held"]["subject"].startswith("effect:") and "request" not in row["held"]:
                kinds.append("happened")
            yield from (("decides", kind, row["pk"], row["sk"]) for kind in kinds)


def _of_request(world: World, row: Item) -> Iterator[Choice]:
    """Yields the decisions of the people who were sent a link for a request.

    One of them approves on the command line as well; see `programs.ANN`.
    """
    for pk, sk, person in sorted(world.observer.told):
        if (pk, sk) == (row["pk"], row["sk"]):
            yield from (("says", person, said, pk, sk) for said in Word)


def _of_senders(world: World) -> Iterator[Choice]:
    if not world.free("ingest", world.scenario.receivers):
        return
    under_way = {job.webhook for job in world.jobs.values()}
    for webhook in world.scenario.webhooks:
        tries = world.tries.get(webhook.name, 0)
        heard = world.answered.get(webhook.name, 500) < 500
        again = (
            webhook.retries
            and not heard
            and tries < world.scenario.tries
            and webhook not in under_way
        )
        if not tries or again:
            yield ("sends", webhook.name)


def _of_age(world: World) -> Iterator[Choice]:
    if world.left.ages and not world.late and quiet(world) and not unacknowledged(world):
        yield from (("ages", days) for days in ("8", "36", "43"))
    if world.scenario.budget.ages and world.aws.table.expired(world.clock.now()):
        yield ("expires",)


def _of_queues(world: World) -> Iterator[Choice]:
    worker = world.free("worker", world.scenario.workers)
    troubles = world.scenario.faults if world.left.faults else ()
    for lane, queue in world.aws.queues.items():
        visible = queue.visible()
        if worker:
            yield from (("receives", lane, id_) for id_ in visible)
        if "throttled" in troubles:
            yield from (("throttles", lane, id_) for id_ in visible)
        if "lost" in troubles:
            yield from (("loses", lane, message[0]) for message in queue.snapshot()[1])
        if "redelivered" in troubles:
            # Received messages only; SQS does not deliver a delayed message early.
            hidden = (m[0] for m in queue.snapshot()[1] if m[4] and m[0] not in visible)
            yield from (("reappears", lane, id_) for id_ in hidden)
