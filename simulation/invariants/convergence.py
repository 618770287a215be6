"""Lets a world converge and checks the result.

During convergence nothing fails, senders retry until acknowledged, workers process every message,
and the reconciler runs in every minute in which it has work. Every event must then end, and the
ledger must agree with the observed effects. In a world with erasures, an operator then erases
every event.
"""

from typing import Final

from simulation.engine import invocations
from simulation.engine.virtual_time import (
    FIRST_MS,
    SKEW,
    next_moment,
    next_pass,
    next_sweep,
    quiet,
    unacknowledged,
)
from simulation.engine.world import DAY_MS, World
from simulation.invariants import approvals, due_index
from simulation.invariants.fifo_order import check_queue_behind
from simulation.invariants.final_erasure import erase_all
from simulation.invariants.message_deletion import in_flight
from simulation.invariants.observer import RunName, Violation, must
from simulation.invariants.ordering import order_of
from simulation.worlds.scenario import SUCCEEDS
from webhook_inbox.domain.manifest import SPLIT
from webhook_inbox.domain.ports import Item, Key
from webhook_inbox.handlers.approvals.approvers import people_of
from webhook_inbox.handlers.approvals.request_row import RequestRow
from webhook_inbox.handlers.ordering.gaps import SUBJECT
from webhook_inbox.ledger.schema import (
    APPROVAL_PREFIX,
    IDENTICAL_BODY,
    RUN_PREFIX,
    event_key,
    run_key,
)
from webhook_inbox.queue.message import RunMessage
from webhook_inbox.reconciler.received import CURSORS
from webhook_inbox.replay.request import ReplayRequest

# A run whose handler is not deployed is sent once a minute for an hour.
ROLLING_MESSAGES: Final = 62
# The wait for a probe whose worker is lost, in seconds; one message a second.
PROBE_MESSAGES: Final = 32
STEPS: Final = 3_000
# The factor for worlds in which handlers may be missing, or in which a circuit stays open: a run
# that always fails at its destination waits for its maximum age.
PATIENCE: Final = 4
RETRY_MS: Final = 60_000
# The reconciler declares a run lost after about three and a half days, the slow sweep ends after
# a week, and a failing handler needs ten hours a round.
CONVERGED_WITHIN_MS: Final = 12 * DAY_MS
ENDED: Final = frozenset({"done", "skipped", "dead_letter", "held"})
# By `on_gap`: how a run may end that is outdated or whose predecessor is missing.
NOT_APPLIED: Final = {
    "hold": {"skipped", "held"},
    "skip": {"skipped"},
    "dead": {"skipped", "dead_letter"},
}
DLQ_RETENTION_MS: Final = 14 * DAY_MS
NEVER_RECEIVED: Final = ("lost:", "expired:")


def converge(world: World) -> None:
    """Lets the world converge and checks the result.

    Raises:
        Violation: the world does not converge, or the result breaks a guarantee.
    """
    began = world.clock.ms
    for _ in range(_steps(world)):
        if _run_one(world):
            continue
        if _unblock(world) or _resume(world) or _close(world) or _approve(world):
            continue
        waiting = unacknowledged(world)
        if not waiting and quiet(world):
            _sweep(world)
            check(world)
            if world.scenario.budget.erasures:
                erase_all(world)
            return
        retried = world.clock.ms + RETRY_MS if waiting else None
        check_queue_behind(world)
        moment = min((at for at in (next_moment(world), retried) if at), default=None)
        if moment is None or moment - began > CONVERGED_WITHIN_MS:
            break
        due = next_pass(world)
        world.advance(moment)
        if due == moment:
            _pass(world)
        if retried == moment:
            invocations.deliver(world, waiting[0])
    raise Violation("G1", f"not settled after {(world.clock.ms - began) / 3_600_000:.1f} h")


def _steps(world: World) -> int:
    """Returns the most steps in which a world converges."""
    open_for_long = any(world.behavior_of(name).destination for name in world.scenario.always)
    patient = open_for_long or world.scenario.budget.deployments
    return STEPS * PATIENCE if patient else STEPS


def _run_one(world: World) -> bool:
    """Takes one step that is possible now; returns False if there is none."""
    for slot, job in world.jobs.items():
        if job.wakes <= world.clock.ms:
            _step(world, slot)
            return True
    if world.late:
        world.arrive(0)
        return True
    for lane, queue in world.aws.queues.items():
        visible = queue.visible()
        if visible and world.free("worker", 1):
            invocations.receive(world, lane, visible[0])
            return True
    return False


def _unblock(world: World) -> bool:
    """Replays a dead run that blocks its ordering key."""
    for row in world.aws.table.rows():
        dead = row.get("status") == "dead_letter" and row["handler"] not in world.scenario.always
        if dead and row.get("blocking"):
            about = {"event_ids": (row["event_id"],), "handler": row["handler"]}
            invocations.ask_replay(world, ReplayRequest(**about, rate_per_second=500))
            return True
    return False


def _approve(world: World) -> bool:
    """Approves a held run that other runs of its handler wait for."""
    rows = list(world.aws.table.rows())
    waiting = {row["handler"] for row in rows if row.get("waits_for") == SUBJECT}
    # In a FIFO lane a held run is the first of its line.
    waiting |= {n for n, spec in world.deployment.manifest.handlers.items() if spec.serial}
    for row in rows:
        held = row.get("status") == "held" and row["handler"] in waiting
        # A held copy blocks nothing; if it did, the world would not converge.
        held = held and row["held"]["subject"] != IDENTICAL_BODY
        if held and world.free("person", 1):
            invocations.decide(world, "approve", row["pk"], row["sk"])
            return True
    return False


def _resume(world: World) -> bool:
    """Resumes a paused handler or tenant."""
    for name in world.observer.paused:
        if world.free("person", 1):
            invocations.control(world, name, paused=False)
            return True
    return False


def _close(world: World) -> bool:
    """Closes a circuit that a person opened."""
    for name in world.deployment.manifest.destinations:
        if world.opened_by_hand(name) and world.free("person", 1):
            invocations.circuit(world, name, opened=False)
            return True
    return False


def _pass(world: World) -> None:
    """Runs a whole pass of the reconciler and checks that it handled all due work."""
    read = (world.aws.table.row(CURSORS) or {})["first"]
    now, manifest = world.clock.ms, world.deployment.manifest
    before = due_index.due(world.aws, manifest, now)
    invocations.reconcile(world)
    while "reconciler 1" in world.jobs:
        invocations.step(world, "reconciler 1", "ok")
    after = due_index.due(world.aws, manifest, now)
    due_index.check_pass(before, after, drain=world.scenario.drain)
    for row in world.aws.table.rows():
        if row["sk"] == "event":
            shard = row["received_bucket"].rpartition("#")[2]
            if read[shard] < row["received_at"] < now - FIRST_MS - SKEW:
                _check_adopted(world, row)
        elif row.get("status") == "pending" and row["last_at"] == now and "ordering_key" not in row:
            # A FIFO queue deduplicates for five minutes; the run is sent again later.
            reference = RunMessage(row["source"], row["event_id"], row["handler"])
            sent = in_flight(world, reference, row)
            must("G1", sent, f"{row['sk']} was made pending but not sent")


def _check_adopted(world: World, event: Item) -> None:
    for name in event["runs"]:
        row = world.aws.table.row(Key(event["pk"], RUN_PREFIX + name))
        # A backlog explains the wait; the second look then has to find the run.
        lane = world.deployment.manifest.lane_of(name)
        waits = world.aws.queues[lane].backlog().visible > 0
        must("G1", row is not None or waits, f"{name} of {event['pk']} was not enqueued")


def _sweep(world: World) -> None:
    """Runs the hourly sweep of the DLQs; the messages of dead runs stay."""
    if any(map(len, world.aws.dlqs.values())):
        world.advance(next_sweep(world))
        _pass(world)


def _step(world: World, slot: str) -> None:
    call = world.jobs[slot].node.call
    if call is not None and call.method == "begin":
        invocations.handle(world, slot, world.scenario.always.get(call.args[0], SUCCEEDS))
    else:
        invocations.step(world, slot, "ok")


def check(world: World) -> None:
    """Checks a world that is idle until a person acts."""
    _check_events(world)
    for row in world.aws.table.rows():
        if row["sk"].startswith(RUN_PREFIX):
            _check_run(world, row)
        if row["sk"].startswith(APPROVAL_PREFIX):
            asked = people_of(RequestRow(row), world.deployment.manifest.approvers)
            run = world.aws.table.row(run_key(*approvals.owner(row)))
            ended = run is None or run["status"] in ENDED - {"held"}
            approvals.check_end(world.observer, row, set(asked), ended=ended)
    _check_dead_letters(world)


def _check_events(world: World) -> None:
    for webhook in world.scenario.webhooks:
        for item in webhook.items if webhook.event in world.observer.acknowledged else ():
            row = world.aws.table.row(event_key(webhook.source, item))
            must("G1", row is not None, f"{item} of {webhook.name} is lost")
    for source, event_id in world.observer.acknowledged:
        row = world.aws.table.row(event_key(source, event_id))
        if row is None:
            raise Violation("G1", f"{source} {event_id} was acknowledged but is missing")
    for row in list(world.aws.table.rows()):
        if row["sk"] != "event":
            continue
        for name in row["runs"]:
            run = world.aws.table.row(Key(row["pk"], RUN_PREFIX + name))
            if run is None or run["status"] not in ENDED:
                raise Violation("G1", f"{name} of {row['pk']} ended as {run and run['status']}")


def _check_run(world: World, row: Item) -> None:
    observer, run = world.observer, (row["source"], row["event_id"], row["handler"])
    if run[2] == SPLIT:
        return
    event = world.aws.table.row(event_key(*run[:2])) or {}
    if event.get("held") and run not in observer.decided:
        idle = row["status"] in {"held", "skipped"} and run not in observer.posts
        must("G6", idle or run in observer.forced, f"{run} was not decided and is {row['status']}")
        return
    behavior = world.behavior_of(run[2])
    if row["status"] == "done" and not behavior.shared and not observer.posts.get(run):
        reported = world.left.decisions < world.scenario.budget.decisions  # by a person
        must("G1", reported and behavior.journals, f"{run} is done but its sink was not called")
    bound = _bound(world, run, row)
    if observer.sends.get(run, 0) > bound:
        raise Violation(
            "flood", f"{observer.sends[run]} messages for {run}, at most {bound} expected"
        )
    before = observer.redriven_runs.get(run)
    if before is not None and row["status"] != "done" and run[2] not in observer.unloadable:
        # A held or denied run has spent no attempt.
        tried = row.get("attempt_count", 0) > before or row["status"] in {"held", "skipped"}
        must("G1", tried or run in observer.lost, f"{run} was redriven but not attempted again")
    fails = run[2] in world.scenario.always or run[2] in observer.unloadable
    if (
        fails
        or run in observer.troubled
        or run in observer.handler_failed
        or run in observer.forced
        or (run[:2] in observer.erased and row["status"] == "skipped")
    ):
        return
    if behavior.shared or behavior.approve or behavior.asks:
        return  # It waits for another run or for a person.
    seen = row["status"], row.get("attempt_count"), observer.posts.get(run)
    order = order_of(world, run[2])
    if order is not None and row["status"] in NOT_APPLIED[order.on_gap]:
        must("order", run not in observer.posts, f"{run} is {row['status']} but was applied")
        return  # It was outdated, or its predecessor is missing.
    must("G8", seen == ("done", 1, 1), f"no fault affected {run}: {seen}")
    budget = world.scenario.budget
    waits = observer.handler_failed or budget.replays or budget.pauses or behavior.destination
    if "ordering_key" in row and waits:
        return  # Its message is received again after a wait, a replay or another run of the key.
    received, sent = observer.receives[run], observer.sends[run]
    # A message received while TTL deletes its run is received again.
    again = world.scenario.budget.ages
    must(
        "G8",
        received <= sent + again,
        f"no fault affected {run}: {sent} sent, {received} received",
    )


def _bound(world: World, run: RunName, row: Item) -> int:
    """Returns the most messages that a run may cost, given its history."""
    tries = sum(
        world.tries.get(webhook.name, 0)
        for webhook in world.scenario.webhooks
        if webhook.event == run[:2] or (webhook.source == run[0] and run[1] in webhook.items)
    )
    budget = world.scenario.budget
    # A serial run that defers again and again is sent for each attempt.
    tried = row.get("claims" if "ordering_key" in row else "attempt_count", 0)
    attempts: int = max(tried, 1) + budget.failures
    rolling = ROLLING_MESSAGES if budget.deployments else 0
    if world.behavior_of(run[2]).destination:
        # A run checks once a second whether another run's probe has ended.
        rolling += PROBE_MESSAGES * (1 + budget.faults + budget.failures + budget.jumps)
    return rolling + tries + 2 * attempts + budget.replays + 2 * budget.faults + budget.passes + 8


def _check_dead_letters(world: World) -> None:
    in_dlq: set[RunName] = set()
    for queue in world.aws.dlqs.values():
        for message in queue.snapshot()[1]:
            reference = RunMessage.decode(message[1])
            run = reference.source, reference.event_id, reference.handler
            row = world.aws.table.row(run_key(*run)) or {}
            if row.get("status") != "dead_letter":
                raise Violation("G1", f"{run} is {row.get('status')} but is in the DLQ")
            in_dlq.add(run)
    for row in world.aws.table.rows():
        if row.get("status") == "dead_letter":
            run = row["source"], row["event_id"], row["handler"]
            aged = row["dead_at"] + DLQ_RETENTION_MS <= world.clock.ms
            lost = (
                aged
                or row["last_error"].startswith(NEVER_RECEIVED)
                or run in world.observer.troubled
            )
            spec = world.deployment.manifest.handlers.get(run[2])
            dropped = spec is not None and spec.serial
            if run not in in_dlq and not lost and not dropped:
                raise Violation("G1", f"{run} is dead but not in the DLQ")
