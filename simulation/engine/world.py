"""The simulated world: doubles, virtual time, and programs suspended between two calls."""

from collections.abc import Hashable
from datetime import timedelta
from typing import Any, Final

from simulation.engine.acting import EFFECT, PLAIN, Behavior
from simulation.engine.doubles import Doubles, VirtualClock
from simulation.engine.jobs import Job
from simulation.engine.sink import DONE, Sink
from simulation.engine.stepping import Answer, Call, Stepping
from simulation.invariants import approvals, circuits, cursors, due_index, effects
from simulation.invariants.erasure import check_emptied
from simulation.invariants.observer import Actor, Observer, RunName, must, named, run_name
from simulation.invariants.transitions import changed, check_texts, check_turn
from simulation.worlds.scenario import Deployment, Scenario
from webhook_inbox.destinations.circuit import breaker_key
from webhook_inbox.domain.idempotency import versioned
from webhook_inbox.domain.manifest import DEFAULT_LANE, SPLIT
from webhook_inbox.domain.model import EventStatus, Run, Status
from webhook_inbox.domain.personal import ERASED
from webhook_inbox.domain.ports import Change, Item, Key
from webhook_inbox.domain.timestamps import to_ms
from webhook_inbox.handlers.effects.plan import Approval
from webhook_inbox.ledger import due_handlers
from webhook_inbox.ledger.deadlines import VISIBILITY_TIMEOUT
from webhook_inbox.ledger.pauses import CONTROL_PK, HANDLER_PREFIX
from webhook_inbox.ledger.schema import (
    APPROVAL_PREFIX,
    RECEIVED_SHARDS,
    RUN_PREFIX,
    event_key,
    event_pk,
    identify,
    run_key,
)
from webhook_inbox.queue.message import RunMessage
from webhook_inbox.queue.visibility import ceil_seconds
from webhook_inbox.reconciler.received import CURSORS, FIRST_LOOK, SECOND_LOOK
from webhook_inbox.replay.request import ReplayRequest
from webhook_inbox.replay.selections import Selections

# The longest delay of a call whose caller gave up.
IN_FLIGHT_MS: Final = 10_000
# Long enough for another worker to take over the run.
THAWS_AFTER_MS: Final = 330_000
# The maximum clock skew: the order of a death and a redrive is decided by their times.
REDRIVEN_AFTER_MS: Final = 5_000
VISIBILITY: Final = ceil_seconds(VISIBILITY_TIMEOUT)
DAY_MS: Final = 86_400_000
MILLISECOND: Final = timedelta(milliseconds=1)


class Zeros:
    """Randomness that names the scenario's selection."""

    def token(self) -> str:
        """See the port."""
        return "0" * 32

    def uniform(self, low: float, high: float) -> float:  # noqa: ARG002 - part of the port
        """See the port."""
        return low


class World:
    """One world.

    Attributes:
        jobs: the invocations in progress, by slot ("worker 1").
        late: calls whose caller gave up and that have not arrived yet.
        deployment: the deployment that new invocations run.
        tries: the number of times each webhook was sent.
        answered: the last HTTP status of each webhook.
        left: the remaining budget.
        sink: the system that the handlers' effects change.
        era: the start of the period in which faults happen, in ms.
        serial: the lanes that are FIFO in any deployment.
        max_skew: the largest difference between two clocks, in ms.
        limits: the attempts per round of each handler's runs.
    """

    def __init__(self, scenario: Scenario, stepping: Stepping) -> None:
        self.scenario = scenario
        self.stepping = stepping
        self.clock = VirtualClock()
        manifests = [deployed.manifest for deployed in scenario.deployments]
        self.serial = frozenset[str]().union(*(manifest.serial_lanes for manifest in manifests))
        self.aws = Doubles(
            *manifests,
            receives={False: scenario.max_receive_count, True: scenario.serial_receives},
            lags=scenario.lag,
            clock=self.clock,
        )
        self.limits = {
            name: spec.max_attempts
            for deployed in scenario.deployments
            for name, spec in deployed.manifest.handlers.items()
        }
        self.max_skew = max(0, *scenario.skews) - min(0, *scenario.skews)
        self.jobs: dict[str, Job] = {}
        self.late: tuple[Call, ...] = ()
        self.deployment: Deployment = scenario.deployments[0]
        self.tries: dict[str, int] = {}
        self.answered: dict[str, int] = {}
        self.left = scenario.budget
        self.era = self.clock.ms
        self.sink = Sink()
        self.observer = Observer(unloadable=set(self.deployment.broken))
        self._move_cursors()
        self._register()
        self._select()

    def _move_cursors(self) -> None:
        """Stores the reconciler's cursors, as its passes until now left them."""
        looks = {"first": FIRST_LOOK, "second": SECOND_LOOK}
        cursors = {
            name: {str(shard): to_ms(self.clock.now() - age) for shard in range(RECEIVED_SHARDS)}
            for name, age in looks.items()
        }
        self.aws.table.update(CURSORS, Change(set={**cursors, "lanes": {}}))
        self.aws.table.written.clear()

    def _register(self) -> None:
        """Registers the first deployment's handlers, as the reconciler has done by now."""
        names, table = self.deployment.manifest.handlers, self.aws.table
        due_handlers.deploy(table, names, now=self.clock.now())
        table.get_many([Key(due_handlers.PK, due_handlers.PREFIX)])  # replicates
        table.written.clear()

    def _select(self) -> None:
        """Stores the selection that the scenario's requests replay: each webhook's runs, dead."""
        if not any(request.selection for request in self.scenario.requests):
            return
        table, now = self.aws.table, self.clock.now()
        selections = Selections(table, Zeros())
        names = self.deployment.manifest.handlers
        runs = [
            Run(*webhook.event, name, "", Status.DEAD_LETTER)
            for webhook in self.scenario.webhooks
            for name in names
        ]
        request = ReplayRequest(status=(EventStatus.DEAD_LETTER,), dry_run=True, fix=True)
        begun = selections.begin(request, now)
        selections.extend(begun, runs, begun.report, cursor="")
        table.get_many([Key(due_handlers.PK, due_handlers.PREFIX)])  # replicates
        table.written.clear()

    # -- snapshots and identity

    def snapshot(self) -> tuple[Any, ...]:
        """Returns the state of the world, for `restore`."""
        return (
            self.clock.ms,
            self.aws.snapshot(),
            self.jobs.copy(),
            self.late,
            self.deployment,
            self.tries.copy(),
            self.answered.copy(),
            self.left,
            self.era,
            self.observer.copy(),
            self.sink.snapshot(),
        )

    def restore(self, snapshot: tuple[Any, ...]) -> None:
        """Restores a snapshot; a snapshot can be restored any number of times."""
        self.clock.ms = snapshot[0]
        self.aws.restore(snapshot[1])
        self.jobs = snapshot[2].copy()
        self.late, self.deployment = snapshot[3], snapshot[4]
        self.tries, self.answered = snapshot[5].copy(), snapshot[6].copy()
        self.left, self.era = snapshot[7], snapshot[8]
        self.observer = snapshot[9].copy()
        self.sink.restore(snapshot[10])

    def key(self) -> Hashable:
        """Returns a value that identifies this state, independent of its history."""
        jobs = ((s, j[0], j[1].number, *j[2:5], *j[7:]) for s, j in sorted(self.jobs.items()))
        return (
            self.clock.ms,
            self.aws.key(),
            tuple(jobs),
            tuple(map(repr, self.late)),
            self.deployment.name,
            tuple(sorted(self.tries.items())),
            tuple(sorted(self.answered.items())),
            self.left,
            self.era,
            self.observer.key(),
            self.sink.key(),
        )

    # -- events outside the invocations

    def free(self, kind: str, number: int) -> str:
        """Returns the first free slot of a kind, "" if there is none."""
        slots = (f"{kind} {n}" for n in range(1, number + 1))
        return next((slot for slot in slots if slot not in self.jobs), "")

    def kill(self, slot: str) -> None:
        """Kills the process of an invocation between two calls, with its other threads."""
        shared = self.scenario.together and self.jobs[slot].kind == "processor"
        threads = [s for s, job in self.jobs.items() if job.kind == "processor"]
        for each in threads if shared else [slot]:
            self.mark_troubled(self.jobs.pop(each))

    def freeze(self, slot: str) -> None:
        """Freezes a worker until after its lease; it then resumes unaware of the time passed."""
        job = self.jobs[slot]
        self.mark_troubled(job)
        self.advance(job.ends + THAWS_AFTER_MS)
        self.jobs[slot] = job._replace(overdue=True, handling=None, wakes=0)

    def advance(self, to: int) -> None:
        """Advances the clock and stops invocations that have timed out."""
        if to > self.clock.ms + IN_FLIGHT_MS:
            while self.late:
                self.arrive(0)
        for job in self.jobs.values():
            self.mark_troubled(job)  # It was slow; its handler may time out.
        self.clock.ms = to
        for slot in [s for s, job in self.jobs.items() if job.ends <= to and not job.overdue]:
            if slot in self.jobs:  # Its process may have been killed with another slot.
                self.kill(slot)

    def age(self, days: int) -> None:
        """Lets days pass without activity; expired rows are not deleted yet."""
        self.era = self.clock.ms + days * DAY_MS
        self.advance(self.era)
        self._move_cursors()
        for row in self.aws.table.rows():
            if row["sk"] == "event" and row["expires_at"] * 1000 <= self.clock.ms:
                self.observer.forget_event(identify(row["pk"]))

    def expire(self) -> None:
        """Deletes expired rows, as TTL does."""
        self.aws.table.delete_expired(self.clock.now())
        for key, _, _ in self.aws.table.written:
            if key.sk.startswith(RUN_PREFIX):
                self.observer.forget_run(run_name(key))
        self.aws.table.written.clear()

    def arrive(self, number: int) -> None:
        """Executes a call whose caller gave up."""
        call = self.late[number]
        self.late = self.late[:number] + self.late[number + 1 :]
        # A late write of a replay still counts as the operator's.
        change = call.args[1] if call.method == "update" else Change()
        replays = "replays" in change.set
        requests = self.scenario.requests if replays else ()
        force = any(request.force for request in requests)
        new_keys = any(request.new_keys for request in requests)
        by_hand = "held_since" in {*change.set, *change.remove}
        actor = Actor("late", replays=replays, force=force, new_keys=new_keys, by_hand=by_hand)
        self.execute(call, actor)

    def throttle(self, lane: str, message_id: str) -> None:
        """Receives a message without processing it, as when Lambda throttles."""
        message = self.aws.queues[lane].take(message_id, hidden_for=VISIBILITY)
        if message is not None:
            self.mark_message_troubled(message.body)

    def reappear(self, lane: str, message_id: str) -> None:
        """Makes a received message visible early: delivery is at least once."""
        queue = self.aws.queues[lane]
        self.mark_message_troubled(next(m[1] for m in queue.snapshot()[1] if m[0] == message_id))
        queue.show(message_id)

    def lose(self, lane: str, message_id: str) -> None:
        """Loses a message, as when its retention period ends."""
        queue = self.aws.queues[lane]
        body = next(m[1] for m in queue.snapshot()[1] if m[0] == message_id)
        queue.lose(message_id)
        self.mark_message_troubled(body)
        self.observer.lost.add(named(RunMessage.decode(body)))

    def redrive(self, lane: str) -> None:
        """Moves the messages of a DLQ back to its queue, seconds after the last death."""
        self.advance(self.clock.ms + REDRIVEN_AFTER_MS)
        dlq = self.aws.dlqs[lane]
        for message in dlq.snapshot()[1]:
            reference = RunMessage.decode(message[1])
            self.observer.redriven(reference, self.row_of(reference))
        dlq.redrive(self.aws.queues[lane])

    def deploy(self, name: str) -> None:
        """Replaces the deployment for invocations that start from now on."""
        self.deployment = self._deployed(name)
        gone = self.limits.keys() - self.deployment.manifest.handlers.keys()
        self.observer.unloadable |= gone | self.deployment.broken

    # -- calls

    def execute(self, call: Call, actor: Actor, *, refuses: bool = False) -> Answer:
        """Executes a call and passes its effects to the observer."""
        if call.port == "sink":
            return Answer(self._at_sink(call, actor))
        if call.port == "chat":
            # A jump may end an invocation between a message and its note.
            most = 1 + self.scenario.budget.faults + self.scenario.budget.jumps
            approvals.told(self.observer, Key(*call.args[:2]), call.args[2], most=most)
            return Answer()
        answer = self.aws.execute(call, refuses=refuses)
        table = self.aws.table
        for key, old, new in table.written:
            if new is not None:
                self._wrote(actor, key, old, new)
        if table.written or call.port == "blobs":
            check_emptied(self.observer, table.rows(), self.aws.blobs)
        table.written.clear()
        if call.method == "send" and answer.error is None:
            for message in call.args[0]:
                if message not in answer.value:
                    self._sent(actor, RunMessage.decode(message.body))
        return answer

    def _at_sink(self, call: Call, actor: Actor) -> Any:
        key, handler, source, event_id = call.args[:4]
        run, behavior = (source, event_id, handler), self.behavior_of(handler)
        if call.method == "find":
            found = self.sink.finds(key)
            if not found:
                self.observer.denied.add((run, actor.lease))
            return found
        if behavior.journals:
            effects.posted(self.observer, actor, run, behavior)
        self.observer.posted(run, key, shared=bool(behavior.shared))
        if not behavior.journals:
            return DONE
        keyed = behavior.in_doubt == "retry"
        until = self.clock.ms + behavior.lifetime // MILLISECOND if keyed else 0
        answer = self.sink.post(key, call.args[4], now=self.clock.ms, until=until)
        effects.executed(self.observer, key, self.sink.executed[key])
        return answer

    def _wrote(self, actor: Actor, key: Key, old: Item | None, new: Item) -> None:
        now = self.clock.ms
        if actor.webhook is not None and actor.webhook.forged:
            must("G6", not key.pk.startswith("event#"), f"{actor.webhook.name} wrote {key}")
        if actor.webhook is not None and actor.webhook.grafted:
            must("G6", key.sk != "event", f"{actor.webhook.name} was stored")
        if key.sk == "event":
            self.observer.stored(old, new, now, self.aws.blobs)
        elif key.sk.startswith(RUN_PREFIX):
            self._wrote_run(actor, run_name(key), old, new)
        elif key == CURSORS:
            lost = self.observer.lost
            cursors.check_moved(self.aws, old or {}, new, lane_of=self._lane_of, lost=lost)
        elif circuits.is_circuit(key):
            circuits.check_held(key, old or {}, new, by_hand=actor.by_hand)
            circuits.changed(self.observer, key, old or {}, new, now=now, max_skew=self.max_skew)
        elif approvals.is_request(key):
            self._wrote_request(actor, old or {}, new)
        elif key.pk == CONTROL_PK:
            self.observer.pause_changed(
                key.sk.removeprefix(HANDLER_PREFIX), now, paused=new["paused"]
            )
        elif effects.is_effect(key) and "status" in new:
            self._wrote_effect(actor, old or {}, new)

    def _wrote_request(self, actor: Actor, old: Item, new: Item) -> None:
        rivals = self._requests(approvals.owner(new))
        rivals = [row for row in rivals if row["subject"] == new["subject"]]
        rivals = [row for row in rivals if row["sk"] != new["sk"]]
        approvals.changed(self.observer, actor, old, new, rivals, now=self.clock.ms)

    def _wrote_effect(self, actor: Actor, old: Item, new: Item) -> None:
        owner = new["source"], new["event_id"], new["handler"]
        given = (self.aws.table.row(run_key(*owner)) or {}).get("approvals", {})
        behavior = self.behavior_of(owner[2])
        if isinstance(behavior.approve, Approval) and new["status"] == "started":
            requests = self._requests(owner)
            approvals.check_begun(owner, new["arguments"], behavior.approve, requests)
        check_texts(self.observer, new)
        if {**old, "error": ERASED} == new:
            return  # Its erasure.
        effects.changed(
            self.observer,
            actor,
            old,
            new,
            now=self.clock.ms,
            behavior=behavior,
            approvals=given,
            executions=self.sink.executed.get(new["idempotency_key"], 0),
        )

    def _wrote_run(self, actor: Actor, run: RunName, old: Item | None, new: Item) -> None:
        limit = self.limits.get(run[2], 0)
        changed(self.observer, actor, run, old or {}, new, now=self.clock.ms, limit=limit)
        due_index.check_listed(run, new, self._is_registered(run[2]))
        check_texts(self.observer, new)
        if (old or {}).get("status") == "held" and new["status"] == "pending":
            self._woken(actor, run, old or {})
        if actor.kind == "reconciler":
            lane = self._deployed(actor.deployment).manifest.lane_of(run[2])
            due_index.check_unexplained(run, old or {}, actor.overdue_until.get(lane, 0))
        if self.left.faults == self.scenario.budget.faults:
            check_turn(self.observer, run, old or {}, new)
        if new["status"] == "done" and (old or {}).get("status") != "done":
            self._check_effect(run, new)
        if old is not None and new.get("approvals", {}) not in ({}, old.get("approvals")):
            self.observer.decided.add(run)
            self._approved(run, old)

    def _woken(self, actor: Actor, run: RunName, held: Item) -> None:
        """Checks the wake of a run that people decide about."""
        if actor.kind != "reconciler" or "request" not in held["held"]:
            return
        request = self.aws.table.row(Key(event_pk(*run[:2]), held["held"]["request"]))
        budget = self.scenario.budget
        # A jump may end the invocation that would have sent the run.
        faultless = self.left.faults == budget.faults and not budget.jumps
        approvals.check_woken(run, held, request, faultless=faultless)

    def _requests(self, run: RunName) -> list[Item]:
        """Returns the requests of a run."""
        rows = (row for row in self.aws.table.rows() if row["sk"].startswith(APPROVAL_PREFIX))
        return [row for row in rows if approvals.owner(row) == run]

    def opened_by_hand(self, destination: str) -> bool:
        """Returns whether a person has opened the circuit of a destination."""
        return "held_since" in (self.aws.table.row(breaker_key(destination)) or {})

    def _lane_of(self, handler: str) -> str:
        lane = self.deployment.manifest.lane_of(handler)
        return lane if lane in self.aws.queues else DEFAULT_LANE

    def _deployed(self, name: str) -> Deployment:
        return next(d for d in self.scenario.deployments if d.name == name)

    def _is_registered(self, handler: str) -> bool:
        row = self.aws.table.row(Key(due_handlers.PK, due_handlers.PREFIX + handler))
        return row is not None

    def _effect_of(self, run: RunName, row: Item) -> Item:
        name = versioned(EFFECT, row.get("key_version", 0))
        return self.aws.table.row(effects.row_key(run, self.behavior_of(run[2]), name)) or {}

    def _check_effect(self, run: RunName, new: Item) -> None:
        behavior = self.behavior_of(run[2])
        if behavior.journals:
            committed = self._effect_of(run, new).get("status") == "committed"
            must("G4", committed, f"{run} is done although its effect is not committed")

    def _approved(self, run: RunName, held: Item) -> None:
        """Notes an approved repetition; an effect that an operator committed is not repeated."""
        row = self._effect_of(run, held)
        doubt = held.get("held", {}).get("fingerprint", "").startswith(effects.DOUBT)
        if doubt and row.get("status") != "committed":
            self.observer.repeats[run] = self.observer.repeats.get(run, 0) + 1

    def behavior_of(self, handler: str) -> Behavior:
        """Returns the behavior of a handler in the first deployment that has it."""
        known = (d.behaviors for d in self.scenario.deployments if handler in d.behaviors)
        return next(known, {}).get(handler, PLAIN)

    def _sent(self, actor: Actor, reference: RunMessage) -> None:
        row = self.row_of(reference) or {}
        event = self.aws.table.row(event_key(reference.source, reference.event_id)) or {}
        first = reference.generation == 0 and event.get("held", False)
        must("G6", not first, f"{named(reference)} was sent, and its event is held")
        self.observer.sent(actor, reference, row.get("generation", 0), self.clock.ms)

    def row_of(self, reference: RunMessage) -> Item | None:
        """Returns the row of the run that a message refers to."""
        key = run_key(reference.source, reference.event_id, reference.handler)
        return self.aws.table.row(key)

    # -- runs affected by a fault

    def mark_troubled(self, job: Job) -> None:
        """Marks the runs of an invocation as troubled."""
        if job.webhook is not None:
            self.observer.mark_troubled(job.webhook.event, self.limits)
        if job.message is not None:
            self.mark_message_troubled(job.message.body)

    def mark_message_troubled(self, body: str) -> None:
        """Marks the run of a message as troubled, and the runs of a batch's items."""
        run = named(RunMessage.decode(body))
        self.observer.mark_troubled(run[:2], [run[2]])
        for webhook in self.scenario.webhooks if run[2] == SPLIT else ():
            for item in webhook.items:
                self.observer.mark_troubled((webhook.source, item), self.limits)


def all_ended(world: World) -> bool:
    """Returns whether all runs that were received have ended."""
    jobs = (job for job in world.jobs.values() if job.kind == "processor")
    return all(job.node.call is None for job in jobs)
