"""Starts invocations, answers each of their calls, and ends them."""

from collections.abc import Hashable
from dataclasses import replace
from typing import Any

from simulation.engine import programs
from simulation.engine.acting import AttemptOutcome
from simulation.engine.endings import end
from simulation.engine.jobs import Job
from simulation.engine.stepping import Answer, Call, Program
from simulation.engine.world import VISIBILITY, World
from simulation.invariants import destinations, due_index
from simulation.invariants.circuits import is_circuit
from simulation.invariants.fifo_order import check_fifo_order
from simulation.invariants.message_deletion import is_dead_for, moved_to_dlq
from simulation.invariants.observer import Actor, RunName, must, named, run_name
from simulation.invariants.ordering import check_order
from simulation.worlds.scenario import SECRET, SOURCES, Webhook
from webhook_inbox.domain.errors import Unavailable
from webhook_inbox.domain.ports import Key
from webhook_inbox.domain.secret_document import Secrets
from webhook_inbox.domain.timestamps import from_ms
from webhook_inbox.handlers.approvals.request_row import Word
from webhook_inbox.ledger.pauses import TENANT_PREFIX
from webhook_inbox.ledger.schema import ACTION_PREFIX, RUN_PREFIX, event_key, run_key
from webhook_inbox.queue.message import RunMessage
from webhook_inbox.queue.outcomes import Worker
from webhook_inbox.replay.request import ReplayRequest

LOST_ANSWER = Answer(("aws", "Call", "did not answer (injected)"), Unavailable)
# Faults that the inbox absorbs: they do not mark a run as troubled.
UNNOTICED = frozenset({"ok", "stale", "twice"})


# -- starting an invocation


def with_preloaded(world: World) -> World:
    """Ingests the preloaded webhooks without a fault and returns the world."""
    for webhook in world.scenario.webhooks:
        if webhook.preloaded:
            deliver(world, webhook)
            while world.jobs:
                step(world, "ingest 1", "ok")
    if world.scenario.begun:
        for lane, queue in world.aws.queues.items():
            for message_id in queue.visible():
                receive(world, lane, message_id)
                _work(world, "worker 1")
    return world


def _work(world: World, slot: str) -> None:
    """Makes an attempt that succeeds, without a fault."""
    while slot in world.jobs:
        call = world.jobs[slot].node.call
        if call is not None and call.method == "begin":
            handle(world, slot, AttemptOutcome())
        else:
            step(world, slot, "ok")


def deliver(world: World, webhook: Webhook) -> None:
    """Sends a webhook to ingest."""
    if world.serial:  # Without serial lanes this note would only distinguish equal states.
        world.observer.earlier.setdefault(webhook.event, frozenset(world.observer.acknowledged))
    tried = world.tries.get(webhook.name, 0) + 1
    world.tries[webhook.name] = tried
    slot = world.free("ingest", max(1, world.scenario.receivers))
    delivery = webhook.delivered(world.clock.now(), f"{webhook.name}/{tried}")
    program = programs.ingest(world.deployment.manifest, delivery)
    _begin(world, slot, "ingest", (webhook, tried), program, webhook=webhook)


def receive(world: World, lane: str, message_id: str) -> None:
    """Delivers a message to a worker, or to the DLQ once its receive count is exhausted."""
    body = next(m[1] for m in world.aws.queues[lane].snapshot()[1] if m[0] == message_id)
    message = world.aws.queues[lane].take(message_id, hidden_for=VISIBILITY)
    if message is None:
        moved_to_dlq(world, RunMessage.decode(body))
        return
    world.observer.received(RunMessage.decode(body))
    slot = world.free("worker", max(1, world.scenario.workers))
    skews = world.scenario.skews
    skew = skews[(int(slot[-1]) - 1) % len(skews)]
    until = from_ms(world.clock.ms + skew) + programs.TIMEOUTS["processor"]
    fifo = lane in world.serial
    most = world.scenario.serial_receives if fifo else world.scenario.max_receive_count
    name = "process" if world.scenario.together else slot
    worker = Worker(name, "v1", lane, most)
    now = world.deployment
    program = programs.processor(now.manifest, now.handlers, message, worker, until)
    about, parts = (worker, message, skew), {"skew": skew, "message": message, "lane": lane}
    parts["dead"] = is_dead_for(world, lane, message)
    run = named(RunMessage.decode(body))
    controls_seen = _changes(world, _pausable(world, run))
    parts["erased"] = run[:2] in world.observer.erased
    _begin(world, slot, "processor", about, program, controls_seen=controls_seen, **parts)


def _pausable(world: World, run: RunName) -> tuple[str, str]:
    """Returns the names of a run's handler and tenant, as `Observer.paused` has them."""
    event = world.aws.table.row(event_key(*run[:2])) or {}
    return run[2], TENANT_PREFIX + event.get("tenant", "")


def _changes(world: World, names: tuple[str, str]) -> int:
    return sum(world.observer.controls.get(name, 0) for name in names)


def reconcile(world: World) -> None:
    """Starts a pass of the reconciler."""
    until = world.clock.now() + programs.TIMEOUTS["reconciler"]
    drain = world.scenario.drain
    program = programs.reconciler(world.deployment.manifest, until, drain=drain)
    slot = world.free("reconciler", 2)
    # Two passes never start in the same millisecond.
    skew = int(slot[-1]) - 1
    name = world.deployment.name
    _begin(world, slot, "reconciler", (skew, drain), program, skew=skew, deployment=name)


def replay(world: World, number: int) -> None:
    """Starts the scenario's n-th replay."""
    ask_replay(world, world.scenario.requests[number])


def ask_replay(world: World, request: ReplayRequest) -> None:
    """Starts a replay."""
    until = world.clock.now() + programs.TIMEOUTS["replay"]
    program = programs.replay(world.deployment.manifest, request, until)
    slot = world.free("replay", 2)
    # Two replays never draw the same tokens, even in the same slot and millisecond.
    drawn = 1000 * world.left.replays
    keys = request.new_keys
    force = request.force
    _begin(world, slot, "replay", request, program, force=force, new_keys=keys, drawn=drawn)


def decide(world: World, kind: str, pk: str, sk: str) -> None:
    """Starts a decision of a person about a held or dead run, as its row is now."""
    row = world.aws.table.row(Key(pk, sk))
    if row is None:
        raise ValueError(f"{sk} is gone")
    slot = world.free("person", 2)
    program = programs.decision(world.deployment.manifest, row, kind)
    asked = row.get("held", {}).get("fingerprint", ""), row.get("lease_id", "")
    about = kind, pk, sk, asked, row.get("generation", 0), row.get("claims", 0)
    drawn, person = 1000 * world.left.decisions, programs.ANN.name
    _begin(world, slot, "person", about, program, drawn=drawn, person=person)


def say(world: World, person: str, said: str, pk: str, sk: str) -> None:
    """Starts a person's decision about a request through the link."""
    row = world.aws.table.row(Key(pk, sk))
    if row is None:
        raise ValueError(f"{sk} is gone")
    slot = world.free("person", 2)
    program = programs.word(world.deployment.manifest, row, person, Word(said))
    drawn = 1000 * world.left.decisions
    _begin(world, slot, "person", (person, said, pk, sk), program, drawn=drawn, person=person)


def control(world: World, name: str, *, paused: bool) -> None:
    """Starts the pause or the resumption of a handler or tenant."""
    slot = world.free("person", 2)
    program = programs.control(name, paused=paused)
    _begin(world, slot, "person", (name, paused), program, drawn=1000 * world.left.pauses)


def circuit(world: World, destination: str, *, opened: bool) -> None:
    """Starts the opening or the closing of a circuit by hand."""
    slot = world.free("person", 2)
    program = programs.circuit(destination, opened=opened)
    _begin(world, slot, "person", (destination, opened), program, drawn=1000 * world.left.openings)


def erase(world: World, source: str, event_id: str) -> None:
    """Starts the erasure of an event's payload."""
    slot = world.free("person", 2)
    program = programs.erasure(source, event_id)
    event, drawn = (source, event_id), 1000 * world.left.erasures
    _begin(world, slot, "person", ("erase", *event), program, drawn=drawn, erases=event)


def _begin(
    world: World, slot: str, kind: str, about: Hashable, program: Program, **parts: Any
) -> None:
    key = kind, world.deployment.identity, about, world.clock.ms
    node = world.stepping.begin(key, program)
    ends = world.clock.ms + int(programs.TIMEOUTS[kind].total_seconds() * 1000)
    _advance(world, slot, Job(kind, node, ends, **parts))


# -- continuing an invocation


def step(world: World, slot: str, how: str) -> None:
    """Makes the next call of an invocation, or ends it.

    Args:
        world: the world.
        slot: the slot of the invocation.
        how: "ok", or a fault: "before" (the call fails), "after" (it takes effect and the answer
            is lost), "twice" (the SDK repeats it), "delayed" (it fails and takes effect later),
            "refused" (the queue rejects a message), "stale" (an eventually consistent read misses
            recent writes), "undeleted" (at the end: the message is not deleted).
    """
    job = world.jobs[slot]
    if job.node.call is None:
        end(world, slot, job, how)
        return
    job, answer = _answered(world, job, job.node.call, how)
    node = world.stepping.advance(job.node, answer)
    _advance(world, slot, job._replace(node=node, wakes=0))


def handle(world: World, slot: str, outcome: AttemptOutcome) -> None:
    """Starts a handler whose attempt will have this outcome."""
    job = world.jobs[slot]
    call = job.node.call
    if call is None:
        raise ValueError(f"{slot} has ended")
    name, source, event_id, _, content = call.args
    run = source, event_id, name
    if not job.overdue:  # An invocation frozen past its timeout cannot know that it is late.
        must("erasure", not job.erased, f"{run} began although its payload is erased")
        busy = any(other.handling == run for other in world.jobs.values())
        row = world.aws.table.row(run_key(source, event_id, name))
        world.observer.attempt_began(run, content, row, limit=world.limits[name], busy=busy)
        world.observer.content_began(run, world.aws.table.row(event_key(*run[:2])) or {})
        _check_receives(world, job)
        check_fifo_order(world, run)
        check_order(world, run)
        names = _pausable(world, run)
        known = job.controls_seen == _changes(world, names) and not job.blind
        ignored = known and any(each in world.observer.paused for each in names)
        must("pause", not ignored, f"{run} began although its handler or tenant is paused")
        asked = "policy" in (row or {}).get("approvals", {}) or not world.behavior_of(name).asks
        must("hold", asked, f"{run} began without approval")
    if outcome != AttemptOutcome():
        world.observer.handler_failed.add(run)
    if not outcome.error:
        world.observer.succeeded.add(run)
    answer = Answer((outcome.posts, outcome.error, outcome.seconds))
    node = world.stepping.advance(job.node, answer)
    handling = None if job.overdue else run
    _advance(world, slot, job._replace(node=node, handling=handling))


def _check_receives(world: World, job: Job) -> None:
    """Checks that SQS delivers a message again if its worker crashes in the attempt."""
    if job.message is None or job.lane in world.serial:
        return
    left = job.message.receive_count < world.scenario.max_receive_count
    must("receives", left, f"{job.message.id} is used for an attempt at its last receive")


def _advance(world: World, slot: str, job: Job) -> None:
    """Answers calls without faults or side effects, up to the next call that is a choice."""
    while (call := job.node.call) is not None:
        if call.method == "sleep":
            job = job._replace(wakes=world.clock.ms + max(1, round(call.args[0] * 1000)))
            break
        job, answer = _plain(world, slot, job, call)
        if answer is None:
            break
        job = job._replace(node=world.stepping.advance(job.node, answer))
    world.jobs[slot] = job
    if call is None and job.kind in {"reconciler", "replay", "person"}:
        end(world, slot, job, "ok")


def _plain(world: World, slot: str, job: Job, call: Call) -> tuple[Job, Answer | None]:
    match call.port:
        case "clock":
            return job, Answer(from_ms(world.clock.ms + job.skew))
        case "randomness" if call.method == "uniform":
            low, high = call.args
            return job, Answer(low + (high - low) * world.scenario.jitter)
        case "randomness":
            # A receipt identifies one receive of one message, so leases differ.
            name = job.message.receipt if job.message else f"{slot}@{world.clock.ms}"
            return job._replace(drawn=job.drawn + 1), Answer(f"{name}.{job.drawn}")
        case "secrets":
            return job, Answer(_secrets(call))
        case "handler" | "sink" | "chat":
            return _note_progress(world, job, call)
    # A read with an empty result need not be a choice of its own. Nor need a write of the audit,
    # which no program reads, once it cannot fail.
    found = world.aws.finds_nothing(call) or (not world.left.faults and _is_audit(call))
    return job, world.execute(call, Actor(job.kind)) if found else None


def _secrets(call: Call) -> str | Secrets:
    """Returns the document, or the one generated key, which was never rotated."""
    if call.method == "generated":
        return "" if dict(call.options).get("previous") else programs.LINK_KEY
    return {source.secret: (SECRET,) for source in SOURCES.values()}


def _is_audit(call: Call) -> bool:
    """Returns whether a call writes a row of the audit or of an event's history."""
    if call.port != "table" or call.method not in {"put", "update"}:
        return False
    first = call.args[0]
    pk, sk = (first["pk"], first["sk"]) if call.method == "put" else first
    return bool(pk.startswith("audit#") or sk.startswith(ACTION_PREFIX))


def _note_progress(world: World, job: Job, call: Call) -> tuple[Job, Answer | None]:
    """Notes the progress of a handler; calls of its sink are left to the scheduler."""
    match call.method:
        case "end":
            return job._replace(handling=None), Answer()
        case "enter":
            return job._replace(entering=world.clock.ms), Answer()
        case "entered":
            destinations.called(world, job, call.args[0])
            return job, Answer()
    return job, None


def _answered(world: World, job: Job, call: Call, how: str) -> tuple[Job, Answer]:
    if call.port == "clock":
        return job, Answer()  # The sleep is over.
    if how not in UNNOTICED:
        world.mark_troubled(job)
        job = job._replace(blind=job.blind or destinations.is_optional(call))
    if how == "before":
        return job, LOST_ANSWER
    if how == "delayed":
        world.late = (*world.late, call)
        return job, LOST_ANSWER
    if job.dead and call.method == "update" and job.message is not None:
        # A replay may have begun a new round since the message was received.
        dead = is_dead_for(world, job.lane, job.message)
        must("receives", not dead, f"{job.message.id} of a dead run costs a write")
    world.aws.stale = how == "stale"
    answer = world.execute(call, _actor(world, job), refuses=how == "refused")
    world.aws.stale = False
    job = _note_backlog(world, _leased(job, call, answer), call)
    if destinations.is_optional(call) and is_circuit(call.args[0]):
        job = destinations.note_circuit_read(world, job, call.args[0])
    if how == "twice":
        return job, world.execute(call, replace(_actor(world, job), kind="late"))
    return job, LOST_ANSWER if how == "after" else answer


def _leased(job: Job, call: Call, answer: Answer) -> Job:
    if job.kind != "processor" or call.method != "update" or answer.error is not None:
        return job
    key: Key = call.args[0]
    own = job.message is not None and key.sk.startswith(RUN_PREFIX)
    if not own or job.message is None:
        return job
    if run_name(key) != named(RunMessage.decode(job.message.body)):
        return job  # Another run, which this one woke.
    mine = answer.value["status"] == "processing"
    return job._replace(lease=answer.value["lease_id"] if mine else "")


def _note_backlog(world: World, job: Job, call: Call) -> Job:
    if call.method != "backlog":
        return job
    lane = call.port.removeprefix("queue ")
    # Relative to the start of the pass; the time of the read would only distinguish equal states.
    began = job.ends - int(programs.TIMEOUTS[job.kind].total_seconds() * 1000)
    until = began + job.skew - due_index.explained(world.aws.queues[lane])
    return job._replace(overdue_until=(*job.overdue_until, (lane, until)))


def _actor(world: World, job: Job) -> Actor:
    others = (j for j in world.jobs.values() if j is not job)
    held = frozenset(j.lease for j in others if j.lease and not j.overdue)
    replays = job.kind == "replay"
    return Actor(
        job.kind,
        job.lease,
        job.webhook,
        job.message,
        replays,
        job.force,
        held,
        job.new_keys,
        by_hand=job.kind == "person",
        person=job.person,
        deployment=job.deployment,
        overdue_until=dict(job.overdue_until),
    )
