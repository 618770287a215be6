"""Runs a night: the library over its doubles, with several workers, in one deterministic schedule.

events ──► ingest ──► queue ──► workers, every five seconds ──► a destination that is down
                        ▲             └─► ledger
                        └── reconciler, every minute
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from itertools import cycle
from typing import Any, Final

from simulation.engine.acting import EFFECT, error_of_call
from simulation.engine.doubles import Doubles
from simulation.engine.programs import TIMEOUTS, load_provider
from simulation.engine.sink import Sink
from simulation.invariants.observer import must
from simulation.worlds.nights import Night
from simulation.worlds.scenario import ACME, SECRET, Webhook, handler, manifest
from webhook_inbox.adapters.memory import ManualClock, MemorySecrets, SeededRandomness
from webhook_inbox.adapters.memory.ports import RECEIVES
from webhook_inbox.destinations.circuit import CallOutcome
from webhook_inbox.domain.errors import Transient
from webhook_inbox.domain.manifest import (
    SERIAL,
    Backoff,
    BreakerSpec,
    DestinationSpec,
    HandlerSpec,
    Manifest,
    Order,
)
from webhook_inbox.domain.model import Run, Status
from webhook_inbox.domain.ports import Message
from webhook_inbox.domain.timestamps import from_ms, to_ms
from webhook_inbox.handlers.context import Context
from webhook_inbox.handlers.effects.journal import EffectState
from webhook_inbox.handlers.event import Event
from webhook_inbox.handlers.router import Registered
from webhook_inbox.ingest.ingest import Ingest
from webhook_inbox.ingest.receipt import IngestOutcome
from webhook_inbox.ledger.deadlines import VISIBILITY_TIMEOUT
from webhook_inbox.ledger.schema import EFFECT_PREFIX, RUN_PREFIX, run_from
from webhook_inbox.processor.processor import Processor
from webhook_inbox.queue.outcomes import Worker
from webhook_inbox.queue.visibility import ceil_seconds
from webhook_inbox.reconciler.reconciler import Reconciler

LANE: Final = "mail"
BREAKER: Final = BreakerSpec()
MAIL: Final = DestinationSpec("mail", "https://mail.example", breaker=BREAKER)
WORKERS: Final = 4
VISIBILITY: Final = ceil_seconds(VISIBILITY_TIMEOUT)
POLL: Final = timedelta(seconds=5)
MINUTE_MS: Final = 60_000
# A destination that flaps answers a call after so long without one.
IDLE: Final = timedelta(seconds=BREAKER.recovery * 0.9)
# Every run is done this long after the outage.
RECOVERY: Final = timedelta(hours=1)


@dataclass(slots=True)
class NightReport:
    """The figures of a night.

    Attributes:
        calls: the calls during the outage, by event id.
        counted: the failed attempts that counted, of all runs.
        receives: the most receives of a message.
        messages: the processed messages.
        minutes: the minutes after the outage until every run was done.
    """

    calls: Counter[str] = field(default_factory=Counter)
    counted: int = 0
    receives: int = 0
    messages: int = 0
    minutes: float = 0.0


class NightWorld:
    """The inbox and the destination during one night."""

    def __init__(self, night: Night) -> None:
        self.night = night
        self.report = NightReport()
        self._clock, self._sink = ManualClock(), Sink()
        self._ends_at = self._clock.now() + timedelta(hours=night.hours)
        self._called_at = self._clock.now() - IDLE
        self._failing = {f"e{number}" for number in range(night.failing)}
        self._mail = replace(MAIL, breaker=replace(BREAKER, drain=night.drain))
        self._manifest = _manifest(night, self._mail)
        secrets = MemorySecrets({ACME.secret: (SECRET,)})
        aws = Doubles(self._manifest, receives=RECEIVES, lags=False, clock=self._clock)
        self._ports = replace(aws.ports, secret_store=secrets)
        self._table = aws.table
        self._queue, self._dlq = aws.queues[LANE], aws.dlqs[LANE]
        self._workers = cycle([self._worker(seed) for seed in range(WORKERS)])
        self._reconciler = Reconciler(self._manifest, self._ports)

    def run(self) -> NightReport:
        """Runs the outage and what follows it.

        Raises:
            Violation: a guarantee is broken.
        """
        self._receive_all()
        self._work_until(self._ends_at)
        self._check_outage()
        self._work_until(self._ends_at + RECOVERY)
        self._check_recovery()
        return self.report

    # -- the inbox

    def _receive_all(self) -> None:
        ingest = Ingest(self._manifest, self._ports, providers=load_provider)
        for number in range(self.night.runs):
            content = str(number % self.night.keys)
            webhook = Webhook("mail", event_id=f"e{number}", content=content)
            receipt = ingest.receive(webhook.delivered(self._clock.now(), f"r{number}"))
            must("G1", receipt.outcome is IngestOutcome.ACCEPTED, f"e{number}: {receipt.outcome}")

    def _worker(self, seed: int) -> Processor:
        ports = replace(self._ports, randomness=SeededRandomness(seed))
        return Processor(self._manifest, ports, handlers=lambda _: Registered(self._handle))

    def _work_until(self, end: datetime) -> None:
        while self._clock.now() < end and not self._ended():
            self._work()
            at = self._next_moment()
            self._clock.advance(seconds=max((at - self._clock.now()).total_seconds(), 0.0))

    def _next_moment(self) -> datetime:
        """Returns when the workers poll next: at the next message, and each full minute."""
        now = self._clock.now()
        minute = from_ms((to_ms(now) // MINUTE_MS + 1) * MINUTE_MS)
        visible = self._queue.next_visible_at()
        message = minute if visible is None else max(from_ms(visible), now + POLL)
        return min(message, minute)

    def _work(self) -> None:
        if to_ms(self._clock.now()) % MINUTE_MS == 0:
            self._reconciler.run(deadline=self._clock.now() + TIMEOUTS["reconciler"])
        # Nothing observes the writes of a night.
        self._table.written.clear()
        while received := self._queue.receive(10, hidden_for=VISIBILITY):
            for message in received:
                self._process(message)

    def _process(self, message: Message) -> None:
        worker = Worker("night", "1", LANE, RECEIVES[self.night.serial])
        deadline = self._clock.now() + TIMEOUTS["processor"]
        result = next(self._workers).process(message, worker=worker, deadline=deadline)
        self.report.messages += 1
        self.report.receives = max(self.report.receives, message.receive_count)
        if not result.keeps_message:
            self._queue.delete(message.receipt)

    # -- the handler and its destination

    def _handle(self, event: Event, context: Context) -> None:
        context.effect(EFFECT, lambda key: self._call(event.id, context, key))

    def _call(self, event_id: str, context: Context, key: str) -> str:
        gate = context.gate
        gate.enter(self._mail, context.reservations, until=context.deadline)
        if self._is_down(event_id):
            self.report.calls[event_id] += 1
            error = Transient("mail: POST /thanks answered 503")
            raise error_of_call(gate, self._mail, CallOutcome.failed(), error)
        now = to_ms(self._clock.now())
        answer = self._sink.post(key, event_id, now=now, until=now + 86_400_000)
        gate.report(self._mail, CallOutcome.ok())
        return answer

    def _is_down(self, event_id: str) -> bool:
        if self._clock.now() >= self._ends_at:
            return False
        if self.night.failing:
            return event_id in self._failing
        if not self.night.flaps:
            return True
        idle = self._clock.now() - self._called_at
        self._called_at = self._clock.now()
        return idle < IDLE

    # -- checks

    def _runs(self) -> Iterator[Run]:
        return (run_from(row) for row in self._table if row["sk"].startswith(RUN_PREFIX))

    def _ended(self) -> bool:
        if len(self._queue):
            return False
        return all(run.status is Status.DONE for run in self._runs())

    def _check_outage(self) -> None:
        report, waiting = self.report, [run for run in self._runs() if run.done_at is None]
        for run in waiting:
            name, calls = run.event_id, report.calls[run.event_id]
            must("G1", run.status is not Status.DEAD_LETTER, f"{name} died: {run.last_error}")
            must("G9", len(run.attempts) >= min(calls, 18), f"{name}: a call is not in its history")
            fails = not self._failing or name in self._failing
            must("circuit", fails, f"{name} waits behind requests that always fail")
        report.counted = sum(run.attempt_count for run in waiting)
        spent = f"{report.counted} attempts were counted during the outage"
        # Only calls at a closed circuit count, and the last of these opens it.
        closings = 1 + (self.night.runs - self.night.failing if self.night.failing else 0)
        must("circuit", report.counted < BREAKER.failures * closings, spent)
        self._check_doubts({run.event_id for run in waiting})
        probes = self.night.hours * 3600 / BREAKER.recovery
        bound = BREAKER.failures * closings + WORKERS + probes
        made = sum(report.calls.values())
        must("circuit", made <= bound, f"{made} calls during the outage, at most {bound} expected")
        most = RECEIVES[True] / 10 + WORKERS
        must("receives", report.receives <= most, f"a message was received {report.receives} times")

    def _check_doubts(self, waiting: set[str]) -> None:
        """Checks that the effect of each call that was answered 503 is in doubt."""
        effects = [row for row in self._table if row["sk"].startswith(EFFECT_PREFIX)]
        for row in effects:
            if row["event_id"] in waiting:
                doubtful = row["status"] == EffectState.STARTED
                must("G4", doubtful, f"the effect of {row['event_id']} is {row['status']}")

    def _check_recovery(self) -> None:
        for run in self._runs():
            must("G1", run.status is Status.DONE, f"{run.event_id} is {run.status} after the night")
            must("G1", run.deaths == 0, f"{run.event_id} died in the night")
            history = run.counted_attempts
            must("G9", bool(history), f"{run.event_id} has no history")
        executed = self._sink.executed
        once = len(executed) == self.night.runs and set(executed.values()) == {1}
        must("G4", once, f"{sum(executed.values())} calls were executed of {self.night.runs}")
        must("G1", len(self._dlq) == 0, f"{len(self._dlq)} messages are in the DLQ")
        self.report.minutes = (self._clock.now() - self._ends_at).total_seconds() / 60


def _manifest(night: Night, mail: DestinationSpec) -> Manifest:
    default = HandlerSpec("", "", "", "", ())
    settings: dict[str, Any] = {"max_attempts": default.max_attempts, "backoff": Backoff()}
    if night.serial:
        settings["order"] = Order(SERIAL, "content")
    spec = handler("mail", lane=LANE, destinations=(MAIL.name,), **settings)
    return replace(manifest(spec, sink=mail), sources={ACME.name: replace(ACME, tenant=())})


def run_night(night: Night) -> NightReport:
    """Runs a night.

    Raises:
        Violation: a guarantee is broken.
    """
    return NightWorld(night).run()
