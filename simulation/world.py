"""The simulated world: doubles, virtual time, and programs that stand still between two calls."""

import marshal
from collections.abc import Hashable
from dataclasses import replace
from datetime import timedelta
from typing import Any, Final, NamedTuple

from simulation import programs
from simulation.observed import ObservedTable, VirtualClock
from simulation.scenario import Deployment, Letter, Scenario
from simulation.stepping import Answer, Call, Crashed, Place, Stepping
from simulation.truth import Actor, RunName, Truth, Violation, named
from webhook_inbox.errors import ConditionFailed, Unavailable
from webhook_inbox.instants import from_ms
from webhook_inbox.memory import MemoryBlobs, MemoryQueue
from webhook_inbox.ports import Message, Outgoing
from webhook_inbox.reference import Reference
from webhook_inbox.rows import event_key, run_key

# How long a request that was given up may still be on its way.
ON_ITS_WAY_MS: Final = 10_000
VISIBILITY: Final = 360
DLQ_RETENTION: Final = timedelta(days=14)
LOST_ANSWER: Final = Answer(("aws", "Call", "did not answer (injected)"), Unavailable)


class Job(NamedTuple):
    """An invocation that has begun.

    Attributes:
        kind: which function.
        place: where its program stands.
        ends: when Lambda stops it, in ms.
        skew: how far its clock is off, in ms.
        wakes: until when it sleeps, in ms.
        letter: what ingest was given.
        message: what a processor was given, and the lane it came from.
        lease: the lease it claimed and has not settled.
        handling: the run whose handler it is in.
        force: whether this replay may reopen finished runs.
        drawn: how many random tokens it has drawn.
    """

    kind: str
    place: Place
    ends: int
    skew: int = 0
    wakes: int = 0
    letter: Letter | None = None
    message: Message | None = None
    lane: str = ""
    lease: str = ""
    handling: RunName | None = None
    force: bool = False
    drawn: int = 0


class World:
    """One world. `jobs` are its invocations by slot; `left` is what may still go wrong."""

    def __init__(self, scenario: Scenario, stepping: Stepping) -> None:
        self.scenario = scenario
        self.stepping = stepping
        self.clock = VirtualClock()
        self.stale = False
        self.table = ObservedTable(lag=self._lag if scenario.lag else None)
        self.blobs = MemoryBlobs()
        self.queues: dict[str, MemoryQueue] = {}
        self.dlqs: dict[str, MemoryQueue] = {}
        self._targets: dict[str, Any] = {"table": self.table, "blobs": self.blobs}
        for lane in dict.fromkeys(n for d in scenario.deployments for n in d.manifest.lanes):
            self._add_lane(lane)
        self._limits = {
            name: spec.max_attempts
            for deployed in scenario.deployments
            for name, spec in deployed.manifest.handlers.items()
        }
        self.jobs: dict[str, Job] = {}
        self.late: tuple[Call, ...] = ()
        self.deployment: Deployment = scenario.deployments[0]
        self.tries: dict[str, int] = {}
        self.answered: dict[str, int] = {}
        self.left = scenario.budget
        self.truth = Truth()

    def _add_lane(self, lane: str) -> None:
        dlq = MemoryQueue(self.clock, name=f"{lane}-dlq", retention=DLQ_RETENTION)
        queue = MemoryQueue(
            self.clock,
            name=lane,
            dead_letters=dlq,
            max_receive_count=self.scenario.max_receive_count,
        )
        self.queues[lane], self.dlqs[lane] = queue, dlq
        self._targets |= {f"queue {lane}": queue, f"dlq {lane}": dlq}

    # -- being put back, being told apart

    def snapshot(self) -> tuple[Any, ...]:
        """Returns all there is to know of the world, for `restore`."""
        return (
            self.clock.ms,
            self.table.snapshot(),
            self.blobs.objects.copy(),
            [queue.snapshot() for queue in (*self.queues.values(), *self.dlqs.values())],
            self.jobs.copy(),
            self.late,
            self.deployment,
            self.tries.copy(),
            self.answered.copy(),
            self.left,
            self.truth.copy(),
        )

    def restore(self, snapshot: tuple[Any, ...]) -> None:
        """Makes the world what it was; a snapshot serves any number of times."""
        self.clock.ms = snapshot[0]
        self.table.restore(snapshot[1])
        self.blobs.objects = snapshot[2].copy()
        for queue, kept in zip(
            (*self.queues.values(), *self.dlqs.values()), snapshot[3], strict=True
        ):
            queue.restore(kept)
        self.jobs = snapshot[4].copy()
        self.late, self.deployment = snapshot[5], snapshot[6]
        self.tries, self.answered = snapshot[7].copy(), snapshot[8].copy()
        self.left = snapshot[9]
        self.truth = snapshot[10].copy()

    def key(self) -> Hashable:
        """Returns what tells this state of the world from others, whatever led to it."""
        rows = frozenset(marshal.dumps(row, 2) for row in self.table.rows())
        queues = tuple(q.snapshot()[1] for q in (*self.queues.values(), *self.dlqs.values()))
        jobs = tuple((s, j[0], j[1].number, *j[2:5], j.lane) for s, j in sorted(self.jobs.items()))
        behind = tuple(map(repr, self.table.snapshot()[3])) if self.scenario.lag else ()
        return (
            self.clock.ms,
            rows,
            queues,
            jobs,
            behind,
            tuple(map(repr, self.late)),
            self.deployment.name,
            tuple(sorted(self.tries.items())),
            tuple(sorted(self.answered.items())),
            self.left,
            self.truth.key(),
        )

    # -- invocations begin

    def deliver(self, letter: Letter) -> None:
        """A sender sends a letter."""
        tried = self.tries.get(letter.name, 0) + 1
        self.tries[letter.name] = tried
        slot = self.free("ingest", self.scenario.receivers)
        request_id = f"{letter.name}/{tried}"
        delivery = letter.delivered(self.clock.now(), request_id)
        program = programs.ingest(self.deployment.manifest, delivery)
        key = ("ingest", self.deployment.identity, letter, tried, self.clock.ms)
        self._begin(slot, "ingest", key, program, letter=letter)

    def receive(self, lane: str, message_id: str) -> None:
        """A worker receives a message; or SQS moves it to the DLQ, for having been received."""
        message = self.queues[lane].take(message_id, hidden_for=VISIBILITY)
        if message is None:
            return
        slot = self.free("worker", self.scenario.workers)
        skews = self.scenario.skews
        skew = skews[(int(slot[-1]) - 1) % len(skews)]
        until = from_ms(self.clock.ms + skew) + programs.TIMEOUTS["processor"]
        worker = programs.Worker(slot, "v1", lane, self.scenario.max_receive_count)
        deployed = self.deployment
        program = programs.processor(deployed.manifest, deployed.broken, message, worker, until)
        key = ("processor", deployed.identity, worker, message, skew, self.clock.ms)
        self._begin(slot, "processor", key, program, skew=skew, message=message, lane=lane)

    def reconcile(self) -> None:
        """A pass of the reconciler begins."""
        until = self.clock.now() + programs.TIMEOUTS["reconciler"]
        program = programs.reconciler(self.deployment.manifest, until)
        slot = self.free("reconciler", 2)
        # Two passes never begin in the very same millisecond.
        skew = int(slot[-1]) - 1
        key = ("reconciler", self.deployment.identity, skew, self.clock.ms)
        self._begin(slot, "reconciler", key, program, skew=skew)

    def replay(self, number: int) -> None:
        """An operator asks for the scenario's n-th replay."""
        request = self.scenario.requests[number]
        until = self.clock.now() + programs.TIMEOUTS["replay"]
        program = programs.replay(self.deployment.manifest, request, until)
        key = ("replay", self.deployment.identity, request, self.clock.ms)
        self._begin(self.free("replay", 2), "replay", key, program, force=request.force)

    def free(self, kind: str, number: int) -> str:
        """Returns the first free slot of a kind, "" if none is."""
        slots = (f"{kind} {n}" for n in range(1, number + 1))
        return next((slot for slot in slots if slot not in self.jobs), "")

    def _begin(
        self, slot: str, kind: str, key: Hashable, program: programs.Program, **parts: Any
    ) -> None:
        place = self.stepping.begin(key, program)
        ends = self.clock.ms + int(programs.TIMEOUTS[kind].total_seconds() * 1000)
        self._stand(slot, Job(kind, place, ends, **parts))

    # -- invocations go on

    def step(self, slot: str, how: str) -> None:
        """An invocation makes its next call, or ends.

        Args:
            slot: which one.
            how: "ok", or what goes wrong: "before" (it fails), "after" (it has its effect and
                its answer is lost), "twice" (it is repeated by the SDK), "delayed" (it fails and
                has its effect later), "refused" (the queue does not take every message),
                "stale" (an eventually consistent read misses what was written).
        """
        job = self.jobs[slot]
        call = job.place.call
        if call is None:
            self._end(slot, job, how)
            return
        job, answer = self._answer(job, call, how)
        self._stand(slot, job._replace(place=self.stepping.advance(job.place, answer), wakes=0))

    def verdict(self, slot: str, verdict: programs.Verdict) -> None:
        """A handler begins, and will go like this."""
        job = self.jobs[slot]
        call = job.place.call
        assert call is not None
        handler, source, event_id, _, content = call.args
        run = source, event_id, handler
        busy = any(other.handling == run for other in self.jobs.values())
        row = self.table.row(run_key(source, event_id, handler))
        self.truth.begins(run, content, row, self._limits[handler], busy=busy)
        if verdict != programs.Verdict():
            self.truth.misdone.add(run)
        answer = Answer((verdict.posts, verdict.error, verdict.seconds))
        place = self.stepping.advance(job.place, answer)
        self._stand(slot, job._replace(place=place, handling=run))
        if not verdict.error:
            self.truth.succeeded.add(run)

    def kill(self, slot: str) -> None:
        """The process of an invocation ends, between two of its calls."""
        self.touch(self.jobs.pop(slot))

    def land(self, number: int) -> None:
        """A call that was given up arrives after all."""
        call = self.late[number]
        self.late = self.late[:number] + self.late[number + 1 :]
        self._execute(call, Actor("late"))

    def burn(self, lane: str, message_id: str) -> None:
        """A message is received and never processed, as when Lambda throttles."""
        message = self.queues[lane].take(message_id, hidden_for=VISIBILITY)
        if message is not None:
            self.touch_message(message.body)

    def lose(self, lane: str, message_id: str) -> None:
        """A message is gone."""
        body = next(m[1] for m in self.queues[lane].snapshot()[1] if m[0] == message_id)
        self.queues[lane].lose(message_id)
        self.touch_message(body)

    def deploy(self, name: str) -> None:
        """Another deployment replaces the code, for invocations that begin from now on."""
        self.deployment = next(d for d in self.scenario.deployments if d.name == name)
        gone = self._limits.keys() - self.deployment.manifest.handlers.keys()
        self.truth.shaken |= gone | self.deployment.broken

    def advance(self, to: int) -> None:
        """Time passes; invocations whose time is over are stopped."""
        if to > self.clock.ms + ON_ITS_WAY_MS:
            while self.late:
                self.land(0)
        self.clock.ms = to
        for slot in [s for s, job in self.jobs.items() if job.ends <= to]:
            self.kill(slot)

    def _end(self, slot: str, job: Job, how: str) -> None:
        del self.jobs[slot]
        result = job.place.result
        if isinstance(result, Crashed):
            raise Violation("G1", f"{slot} raised {result.error!r}")
        if job.kind == "ingest" and job.letter is not None:
            self.answered[job.letter.name] = result.status
            row = self.table.row(event_key(job.letter.source, job.letter.event_id))
            self.truth.answered(job.letter, result, row)
        elif job.message is not None and not result.outcome.keeps_message:
            if how == "ok":
                self.queues[job.lane].delete(job.message.receipt)
            else:
                self.touch(job)

    def _stand(self, slot: str, job: Job) -> None:
        """Answers what nothing can go wrong with, up to the next call that counts."""
        while True:
            call = job.place.call
            if call is None:
                break
            if call.port == "clock":
                if call.method == "sleep":
                    job = job._replace(wakes=self.clock.ms + max(1, round(call.args[0] * 1000)))
                    break
                answer = Answer(from_ms(self.clock.ms + job.skew))
            elif call.port == "chance":
                job, answer = self._drawn(slot, job, call)
            elif call.port == "secrets":
                answer = Answer((SECRET,))
            elif self._finds_nothing(call):
                answer = self._execute(call, Actor(job.kind))
            else:
                break
            job = job._replace(place=self.stepping.advance(job.place, answer))
        if job.handling and (call is None or call.port not in {"sink", "handler", "clock"}):
            job = job._replace(handling=None)
        self.jobs[slot] = job
        if job.place.call is None and job.kind in {"reconciler", "replay"}:
            self._end(slot, job, "ok")

    def _finds_nothing(self, call: Call) -> bool:
        # A read that finds nothing now would as well have been made at another moment.
        if call.method == "query_index":
            return self.table.is_empty(call.args[0], call.args[1])
        if call.method == "get_many":
            return not call.args[0]
        return call.port.startswith("dlq") and not len(self._targets[call.port])

    def _drawn(self, slot: str, job: Job, call: Call) -> tuple[Job, Answer]:
        if call.method == "uniform":
            low, high = call.args
            return job, Answer(low + (high - low) * self.scenario.jitter)
        # A receipt names one receive of one message, so no two leases are the same.
        name = job.message.receipt if job.message else f"{slot}@{self.clock.ms}"
        return job._replace(drawn=job.drawn + 1), Answer(f"{name}.{job.drawn}")

    # -- calls

    def _answer(self, job: Job, call: Call, how: str) -> tuple[Job, Answer]:
        if call.port == "clock":
            return job, Answer()  # It has slept.
        actor = self._actor(job)
        if how not in {"ok", "stale"}:
            self.touch(job)
        if how == "before":
            return job, LOST_ANSWER
        if how == "delayed":
            self.late = (*self.late, call)
            return job, LOST_ANSWER
        self.stale = how == "stale"
        answer = self._execute(call, actor, refuses=how == "refused")
        self.stale = False
        job = self._leased(job, call, answer)
        if how == "after":
            return job, LOST_ANSWER
        if how == "twice":
            return job, self._execute(call, replace(self._actor(job), kind="late"))
        return job, answer

    def _leased(self, job: Job, call: Call, answer: Answer) -> Job:
        if call.port != "table" or call.method != "update" or job.kind != "processor":
            return job
        if answer.error is not None:
            return job
        row = answer.value
        mine = row.get("status") == "processing"
        return job._replace(lease=row["lease_id"] if mine else "")

    def _actor(self, job: Job) -> Actor:
        held = frozenset(j.lease for j in self.jobs.values() if j.lease and j is not job)
        return Actor(job.kind, job.lease, job.letter, job.force, held)

    def _execute(self, call: Call, actor: Actor, *, refuses: bool = False) -> Answer:
        if call.port == "sink":
            key, handler, source, event_id = call.args
            self.truth.posted((source, event_id, handler), key)
            return Answer()
        target = self._targets[call.port]
        if refuses:
            first = call.args[0][0]
            target.refuses = lambda message: message is first
        try:
            value = getattr(target, call.method)(*call.args, **dict(call.options))
            answer = Answer(list(value) if call.method == "query" else value)
        except ConditionFailed as error:
            answer = Answer((error.old,), ConditionFailed)
        except Unavailable as error:
            answer = Answer((error.service, error.operation, str(error)), Unavailable)
        if refuses:
            target.refuses = lambda _: False
        self._note(call, actor, answer)
        return answer

    def _note(self, call: Call, actor: Actor, answer: Answer) -> None:
        for key, old, new in self.table.written:
            self.truth.wrote(actor, key, old, new, self.clock.ms, self.blobs)
        self.table.written.clear()
        if call.method == "send" and answer.error is None:
            taken: list[Outgoing] = [m for m in call.args[0] if m not in answer.value]
            self.truth.sent(actor, (m.body for m in taken), self.clock.ms)

    def touch(self, job: Job) -> None:
        """Notes that the runs an invocation works on had trouble."""
        if job.letter is not None:
            handlers = {h for d in self.scenario.deployments for h in d.manifest.handlers}
            self.truth.trouble((job.letter.source, job.letter.event_id), handlers)
        if job.message is not None:
            self.touch_message(job.message.body)

    def touch_message(self, body: str) -> None:
        """Notes that something went wrong with a message."""
        run = named(Reference.decode(body))
        self.truth.trouble(run[:2], [run[2]])

    def _lag(self, unseen: int) -> int:
        return unseen if self.stale else 0


SECRET: Final = "a-secret-of-the-provider"  # noqa: S105 - obviously fake
