"""The simulated world: the doubles, virtual time, and programs that stand between two calls."""

from collections.abc import Hashable
from typing import Any, Final

from simulation.engine.acting import EFFECT, PLAIN, Behavior
from simulation.engine.doubles import Doubles, VirtualClock
from simulation.engine.jobs import Job
from simulation.engine.stepping import Answer, Call, Stepping
from simulation.invariants import circuits, effects
from simulation.invariants.observer import Actor, Observer, RunName, must, named, run_name
from simulation.invariants.transitions import changed
from simulation.worlds.scenario import Deployment, Scenario
from webhook_inbox.domain.manifest import SPLIT
from webhook_inbox.domain.ports import Item, Key
from webhook_inbox.ledger.pauses import CONTROL_PK, HANDLER_PREFIX
from webhook_inbox.ledger.schema import RUN_PREFIX, run_key
from webhook_inbox.queue.message import RunMessage

# How long a request that its sender gave up may still be on its way.
IN_FLIGHT_MS: Final = 10_000
# Long enough for another worker to have taken the run over.
THAWS_AFTER_MS: Final = 330_000
# As long as clocks may be max_skew: a death and a redrive are told apart by their times.
REDRIVEN_AFTER_MS: Final = 5_000
VISIBILITY: Final = 360
DAY_MS: Final = 86_400_000


class World:
    """One world.

    Attributes:
        jobs: its invocations, by reservation.
        late: calls that were given up and are still on their behavior.
        deployment: what invocations that begin now run.
        tries: how often each webhook was sent.
        answered: the HTTP status each webhook got last.
        left: what may still happen to it.
        era: when its troubles began, in ms.
        serial: the lanes that are FIFO in some deployment.
        max_skew: how far clocks are apart, in ms.
        limits: how many attempts a round of each handler's runs has.
    """

    def __init__(self, scenario: Scenario, stepping: Stepping) -> None:
        self.scenario = scenario
        self.stepping = stepping
        self.clock = VirtualClock()
        lanes = dict.fromkeys(n for d in scenario.deployments for n in d.manifest.lanes)
        kept = [deployed.manifest.serial_lanes for deployed in scenario.deployments]
        self.serial = frozenset[str]().union(*kept)
        self.aws = Doubles(
            tuple(lanes),
            serial=self.serial,
            max_receive_count=scenario.max_receive_count,
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
        self.observer = Observer(unloadable=set(self.deployment.broken))

    # -- being put back, being told apart

    def snapshot(self) -> tuple[Any, ...]:
        """Returns all there is to know of the world, for `restore`."""
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
        )

    def restore(self, snapshot: tuple[Any, ...]) -> None:
        """Makes the world what it was; a snapshot serves any number of times."""
        self.clock.ms = snapshot[0]
        self.aws.restore(snapshot[1])
        self.jobs = snapshot[2].copy()
        self.late, self.deployment = snapshot[3], snapshot[4]
        self.tries, self.answered = snapshot[5].copy(), snapshot[6].copy()
        self.left, self.era = snapshot[7], snapshot[8]
        self.observer = snapshot[9].copy()

    def key(self) -> Hashable:
        """Returns what tells this state of the world from others, whatever led to it."""
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
        )

    # -- what happens around the invocations

    def free(self, kind: str, number: int) -> str:
        """Returns the first free reservation of a kind, "" if none is."""
        reservations = (f"{kind} {n}" for n in range(1, number + 1))
        return next(
            (reservation for reservation in reservations if reservation not in self.jobs), ""
        )

    def kill(self, reservation: str) -> None:
        """The process of an invocation ends, between two of its calls."""
        self.mark_troubled(self.jobs.pop(reservation))

    def freeze(self, reservation: str) -> None:
        """A worker's machine stands still; it thaws after its lease, unaware of it."""
        job = self.jobs[reservation]
        self.mark_troubled(job)
        self.advance(job.ends + THAWS_AFTER_MS)
        self.jobs[reservation] = job._replace(overdue=True, handling=None, wakes=0)

    def advance(self, to: int) -> None:
        """Time passes; invocations whose time is over are stopped."""
        if to > self.clock.ms + IN_FLIGHT_MS:
            while self.late:
                self.arrive(0)
        for job in self.jobs.values():
            self.mark_troubled(job)  # It was slow, and its handler may run out of time.
        self.clock.ms = to
        for reservation in [
            s for s, job in self.jobs.items() if job.ends <= to and not job.overdue
        ]:
            self.kill(reservation)

    def age(self, days: int) -> None:
        """Days pass in which nothing happens; what TTL may delete is still there."""
        self.era = self.clock.ms + days * DAY_MS
        self.advance(self.era)
        for row in self.aws.table.rows():
            if row["sk"] == "event" and row["expires_at"] * 1000 <= self.clock.ms:
                self.observer.forget_event((row["source"], row["event_id"]))

    def expire(self) -> None:
        """TTL deletes what has expired."""
        self.aws.table.delete_expired(self.clock.now())
        for key, _, _ in self.aws.table.written:
            if key.sk.startswith(RUN_PREFIX):
                self.observer.forget_run(run_name(key))
        self.aws.table.written.clear()

    def arrive(self, number: int) -> None:
        """A call that was given up arrives after all."""
        call = self.late[number]
        self.late = self.late[:number] + self.late[number + 1 :]
        # A replay's write is still an operator's, however late it comes.
        replays = call.method == "update" and "replays" in call.args[1].set
        force = replays and any(request.force for request in self.scenario.requests)
        self.execute(call, Actor("late", replays=replays, force=force))

    def throttle(self, lane: str, message_id: str) -> None:
        """A message is received and never processed, as when Lambda throttles."""
        message = self.aws.queues[lane].take(message_id, hidden_for=VISIBILITY)
        if message is not None:
            self.mark_message_troubled(message.body)

    def reappear(self, lane: str, message_id: str) -> None:
        """A message is visible again before its time: at least once is not once."""
        queue = self.aws.queues[lane]
        self.mark_message_troubled(next(m[1] for m in queue.snapshot()[1] if m[0] == message_id))
        queue.show(message_id)

    def lose(self, lane: str, message_id: str) -> None:
        """A message is gone, as after the queue's retention."""
        queue = self.aws.queues[lane]
        body = next(m[1] for m in queue.snapshot()[1] if m[0] == message_id)
        queue.lose(message_id)
        self.mark_message_troubled(body)
        self.observer.lost.add(named(RunMessage.decode(body)))

    def redrive(self, lane: str) -> None:
        """An operator moves a DLQ's messages back, some seconds after the last death."""
        self.advance(self.clock.ms + REDRIVEN_AFTER_MS)
        dlq = self.aws.dlqs[lane]
        for message in dlq.snapshot()[1]:
            reference = RunMessage.decode(message[1])
            self.observer.redriven(reference, self.row_of(reference))
        dlq.redrive(self.aws.queues[lane])

    def deploy(self, name: str) -> None:
        """Another deployment replaces the code, for invocations that begin from now on."""
        self.deployment = next(d for d in self.scenario.deployments if d.name == name)
        gone = self.limits.keys() - self.deployment.manifest.handlers.keys()
        self.observer.unloadable |= gone | self.deployment.broken

    # -- calls

    def execute(self, call: Call, actor: Actor, *, refuses: bool = False) -> Answer:
        """Makes a call, and has the observer look at what it did."""
        if call.port == "sink":
            key, handler, source, event_id = call.args
            run, behavior = (source, event_id, handler), self.behavior_of(handler)
            if behavior.journals:
                effects.posted(self.observer, actor, run, behavior)
            self.observer.posted(run, key, shared=bool(behavior.shared))
            return Answer()
        answer = self.aws.execute(call, refuses=refuses)
        table = self.aws.table
        for key, old, new in table.written:
            if new is not None:
                self._wrote(actor, key, old, new)
        table.written.clear()
        if call.method == "send" and answer.error is None:
            for message in call.args[0]:
                if message not in answer.value:
                    self._sent(actor, RunMessage.decode(message.body))
        return answer

    def _wrote(self, actor: Actor, key: Key, old: Item | None, new: Item) -> None:
        now = self.clock.ms
        if actor.webhook is not None and actor.webhook.forged:
            must("G6", not key.pk.startswith("event#"), f"{actor.webhook.name} wrote {key}")
        if key.sk == "event":
            self.observer.stored(old, new, now, self.aws.blobs)
        elif key.sk.startswith(RUN_PREFIX):
            run = run_name(key)
            limit = self.limits.get(run[2], 0)
            changed(self.observer, actor, run, old or {}, new, now=now, limit=limit)
            if new["status"] == "done" and (old or {}).get("status") != "done":
                self._check_effect(run)
            if old is not None and new.get("approvals") != old.get("approvals"):
                self._approved(run, old)
        elif circuits.is_circuit(key):
            circuits.changed(self.observer, key, old or {}, new, now=now, max_skew=self.max_skew)
        elif key.pk == CONTROL_PK:
            self.observer.pause_changed(
                key.sk.removeprefix(HANDLER_PREFIX), now, paused=new["paused"]
            )
        elif effects.is_effect(key) and "status" in new:
            owner = new["source"], new["event_id"], new["handler"]
            approvals = (self.aws.table.row(run_key(*owner)) or {}).get("approvals", {})
            behavior = self.behavior_of(owner[2])
            old = old or {}
            effects.changed(
                self.observer, actor, old, new, now=now, behavior=behavior, approvals=approvals
            )

    def _check_effect(self, run: RunName) -> None:
        behavior = self.behavior_of(run[2])
        if behavior.journals:
            row = self.aws.table.row(effects.row_key(run, behavior, EFFECT))
            committed = row is not None and row["status"] == "committed"
            must("G4", committed, f"{run} is done and its effect is not committed")

    def _approved(self, run: RunName, held: Item) -> None:
        if held.get("held", {}).get("fingerprint", "").startswith(effects.DOUBT):
            self.observer.repeats[run] = self.observer.repeats.get(run, 0) + 1

    def behavior_of(self, handler: str) -> Behavior:
        """Returns how a handler acts, in whichever deployment has it."""
        known = (d.behaviors for d in self.scenario.deployments if handler in d.behaviors)
        return next(known, {}).get(handler, PLAIN)

    def _sent(self, actor: Actor, reference: RunMessage) -> None:
        row = self.row_of(reference) or {}
        self.observer.sent(actor, reference, row.get("generation", 0), self.clock.ms)

    def row_of(self, reference: RunMessage) -> Item | None:
        """Returns the row of the run that a message names."""
        key = run_key(reference.source, reference.event_id, reference.handler)
        return self.aws.table.row(key)

    # -- who had trouble

    def mark_troubled(self, job: Job) -> None:
        """Notes that the runs an invocation works on had trouble."""
        if job.webhook is not None:
            self.observer.mark_troubled(job.webhook.event, self.limits)
        if job.message is not None:
            self.mark_message_troubled(job.message.body)

    def mark_message_troubled(self, body: str) -> None:
        """Notes that something went wrong with a message."""
        run = named(RunMessage.decode(body))
        self.observer.mark_troubled(run[:2], [run[2]])
        for webhook in self.scenario.webhooks if run[2] == SPLIT else ():
            for item in webhook.items:
                self.observer.mark_troubled((webhook.source, item), self.limits)
