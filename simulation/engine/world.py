"""The simulated world: the doubles, virtual time, and programs that stand between two calls."""

from collections.abc import Hashable
from typing import Any, Final

from simulation.engine.acting import EFFECT, PLAIN, Way
from simulation.engine.doubles import Doubles, VirtualClock
from simulation.engine.jobs import Job
from simulation.engine.stepping import Answer, Call, Stepping
from simulation.invariants import circuits, effects
from simulation.invariants.observer import Actor, RunName, Truth, must, named, run_name
from simulation.invariants.transitions import changed
from simulation.worlds.scenario import Deployment, Scenario
from webhook_inbox.domain.manifest import SPLIT
from webhook_inbox.domain.ports import Item, Key
from webhook_inbox.ledger.pauses import CONTROL_PK, HANDLER_PREFIX
from webhook_inbox.ledger.schema import RUN_PREFIX, run_key
from webhook_inbox.queue.message import RunMessage

# How long a request that its sender gave up may still be on its way.
ON_ITS_WAY_MS: Final = 10_000
# Long enough for another worker to have taken the run over.
THAWS_AFTER_MS: Final = 330_000
# As long as clocks may be apart: a death and a redrive are told apart by their times.
REDRIVEN_AFTER_MS: Final = 5_000
VISIBILITY: Final = 360
DAY_MS: Final = 86_400_000


class World:
    """One world.

    Attributes:
        jobs: its invocations, by reservation.
        late: calls that were given up and are still on their way.
        deployment: what invocations that begin now run.
        tries: how often each letter was sent.
        answered: the HTTP status each letter got last.
        left: what may still happen to it.
        era: when its troubles began, in ms.
        serial: the lanes that are FIFO in some deployment.
        apart: how far clocks are apart, in ms.
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
        self.apart = max(0, *scenario.skews) - min(0, *scenario.skews)
        self.jobs: dict[str, Job] = {}
        self.late: tuple[Call, ...] = ()
        self.deployment: Deployment = scenario.deployments[0]
        self.tries: dict[str, int] = {}
        self.answered: dict[str, int] = {}
        self.left = scenario.budget
        self.era = self.clock.ms
        self.truth = Truth(shaken=set(self.deployment.broken))

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
            self.truth.copy(),
        )

    def restore(self, snapshot: tuple[Any, ...]) -> None:
        """Makes the world what it was; a snapshot serves any number of times."""
        self.clock.ms = snapshot[0]
        self.aws.restore(snapshot[1])
        self.jobs = snapshot[2].copy()
        self.late, self.deployment = snapshot[3], snapshot[4]
        self.tries, self.answered = snapshot[5].copy(), snapshot[6].copy()
        self.left, self.era = snapshot[7], snapshot[8]
        self.truth = snapshot[9].copy()

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
            self.truth.key(),
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
        self.touch(self.jobs.pop(reservation))

    def freeze(self, reservation: str) -> None:
        """A worker's machine stands still; it thaws after its lease, unaware of it."""
        job = self.jobs[reservation]
        self.touch(job)
        self.advance(job.ends + THAWS_AFTER_MS)
        self.jobs[reservation] = job._replace(overdue=True, handling=None, wakes=0)

    def advance(self, to: int) -> None:
        """Time passes; invocations whose time is over are stopped."""
        if to > self.clock.ms + ON_ITS_WAY_MS:
            while self.late:
                self.land(0)
        for job in self.jobs.values():
            self.touch(job)  # It was slow, and its handler may run out of time.
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
                self.truth.forget_event((row["source"], row["event_id"]))

    def expire(self) -> None:
        """TTL deletes what has expired."""
        self.aws.table.delete_expired(self.clock.now())
        for key, _, _ in self.aws.table.written:
            if key.sk.startswith(RUN_PREFIX):
                self.truth.forget_run(run_name(key))
        self.aws.table.written.clear()

    def land(self, number: int) -> None:
        """A call that was given up arrives after all."""
        call = self.late[number]
        self.late = self.late[:number] + self.late[number + 1 :]
        # A replay's write is still an operator's, however late it comes.
        replays = call.method == "update" and "replays" in call.args[1].set
        force = replays and any(request.force for request in self.scenario.requests)
        self.execute(call, Actor("late", replays=replays, force=force))

    def burn(self, lane: str, message_id: str) -> None:
        """A message is received and never processed, as when Lambda throttles."""
        message = self.aws.queues[lane].take(message_id, hidden_for=VISIBILITY)
        if message is not None:
            self.touch_message(message.body)

    def show(self, lane: str, message_id: str) -> None:
        """A message is visible again before its time: at least once is not once."""
        queue = self.aws.queues[lane]
        self.touch_message(next(m[1] for m in queue.snapshot()[1] if m[0] == message_id))
        queue.show(message_id)

    def lose(self, lane: str, message_id: str) -> None:
        """A message is gone, as after the queue's retention."""
        queue = self.aws.queues[lane]
        body = next(m[1] for m in queue.snapshot()[1] if m[0] == message_id)
        queue.lose(message_id)
        self.touch_message(body)
        self.truth.lost.add(named(RunMessage.decode(body)))

    def redrive(self, lane: str) -> None:
        """An operator moves a DLQ's messages back, some seconds after the last death."""
        self.advance(self.clock.ms + REDRIVEN_AFTER_MS)
        dlq = self.aws.dlqs[lane]
        for message in dlq.snapshot()[1]:
            reference = RunMessage.decode(message[1])
            self.truth.redriven(reference, self.row_of(reference))
        dlq.redrive(self.aws.queues[lane])

    def deploy(self, name: str) -> None:
        """Another deployment replaces the code, for invocations that begin from now on."""
        self.deployment = next(d for d in self.scenario.deployments if d.name == name)
        gone = self.limits.keys() - self.deployment.manifest.handlers.keys()
        self.truth.shaken |= gone | self.deployment.broken

    # -- calls

    def execute(self, call: Call, actor: Actor, *, refuses: bool = False) -> Answer:
        """Makes a call, and has the truth look at what it did."""
        if call.port == "sink":
            key, handler, source, event_id = call.args
            run, way = (source, event_id, handler), self.way_of(handler)
            if way.journals:
                effects.posted(self.truth, actor, run, way)
            self.truth.posted(run, key, shared=bool(way.shared))
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
        if actor.letter is not None and actor.letter.forged:
            must("G6", not key.pk.startswith("event#"), f"{actor.letter.name} wrote {key}")
        if key.sk == "event":
            self.truth.stored(old, new, now, self.aws.blobs)
        elif key.sk.startswith(RUN_PREFIX):
            run = run_name(key)
            limit = self.limits.get(run[2], 0)
            changed(self.truth, actor, run, old or {}, new, now=now, limit=limit)
            if new["status"] == "done" and (old or {}).get("status") != "done":
                self._check_effect(run)
            if old is not None and new.get("approvals") != old.get("approvals"):
                self._approved(run, old)
        elif circuits.is_circuit(key):
            circuits.changed(self.truth, key, old or {}, new, now=now, apart=self.apart)
        elif key.pk == CONTROL_PK:
            self.truth.told(key.sk.removeprefix(HANDLER_PREFIX), now, paused=new["paused"])
        elif effects.is_effect(key) and "status" in new:
            owner = new["source"], new["event_id"], new["handler"]
            approvals = (self.aws.table.row(run_key(*owner)) or {}).get("approvals", {})
            way = self.way_of(owner[2])
            old = old or {}
            effects.changed(self.truth, actor, old, new, now=now, way=way, approvals=approvals)

    def _check_effect(self, run: RunName) -> None:
        way = self.way_of(run[2])
        if way.journals:
            row = self.aws.table.row(effects.row_key(run, way, EFFECT))
            committed = row is not None and row["status"] == "committed"
            must("G4", committed, f"{run} is done and its effect is not committed")

    def _approved(self, run: RunName, held: Item) -> None:
        if held.get("held", {}).get("fingerprint", "").startswith(effects.DOUBT):
            self.truth.repeats[run] = self.truth.repeats.get(run, 0) + 1

    def way_of(self, handler: str) -> Way:
        """Returns how a handler acts, in whichever deployment has it."""
        known = (d.ways for d in self.scenario.deployments if handler in d.ways)
        return next(known, {}).get(handler, PLAIN)

    def _sent(self, actor: Actor, reference: RunMessage) -> None:
        row = self.row_of(reference) or {}
        self.truth.sent(actor, reference, row.get("generation", 0), self.clock.ms)

    def row_of(self, reference: RunMessage) -> Item | None:
        """Returns the row of the run that a message names."""
        key = run_key(reference.source, reference.event_id, reference.handler)
        return self.aws.table.row(key)

    # -- who had trouble

    def touch(self, job: Job) -> None:
        """Notes that the runs an invocation works on had trouble."""
        if job.letter is not None:
            self.truth.trouble(job.letter.event, self.limits)
        if job.message is not None:
            self.touch_message(job.message.body)

    def touch_message(self, body: str) -> None:
        """Notes that something went wrong with a message."""
        run = named(RunMessage.decode(body))
        self.truth.trouble(run[:2], [run[2]])
        for letter in self.scenario.letters if run[2] == SPLIT else ():
            for item in letter.items:
                self.truth.trouble((letter.source, item), self.limits)
