"""Processor: claim a run, call its handler, settle the run."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final

from webhook_inbox import providers
from webhook_inbox.destinations.gate import Gate
from webhook_inbox.domain.errors import Deferred, ForeignMessage, Permanent, Unavailable
from webhook_inbox.domain.manifest import SPLIT, HandlerSpec, Manifest
from webhook_inbox.domain.model import StoredEvent, WaitStrategy
from webhook_inbox.domain.ports import Blobs, Clock, Executor, Item, Message, Randomness, Table
from webhook_inbox.domain.secrets import SecretCache
from webhook_inbox.handlers.completions.jobs import Jobs
from webhook_inbox.handlers.context import Clients, no_clients
from webhook_inbox.handlers.ordering.turns import Orders
from webhook_inbox.handlers.router import Registered
from webhook_inbox.ingest.batches import BatchProgress, Splitter
from webhook_inbox.ledger import payloads
from webhook_inbox.ledger.deferral import Deferral, defer
from webhook_inbox.ledger.lease import Lease, NotClaimable, claim
from webhook_inbox.ledger.pauses import HandlerPauses
from webhook_inbox.ledger.schema import event_from, event_key, live
from webhook_inbox.ledger.settle import LeaseLost, extend_life
from webhook_inbox.processor.admission import Admission, AdmissionDecision
from webhook_inbox.processor.fifo_turn import Turns
from webhook_inbox.processor.invocation import Invoker
from webhook_inbox.processor.settlement import LeasedRun, Settler
from webhook_inbox.queue.lanes import Lanes
from webhook_inbox.queue.message import RunMessage
from webhook_inbox.queue.outcomes import RunOutcome, RunResult, Worker
from webhook_inbox.queue.visibility import PlannedWait, queue_policy_of

# The lease outlives the invocation, so that no worker outlives its lease.
LEASE_MARGIN: Final = timedelta(seconds=5)
# What is left of the invocation for settling when the handler's time is up.
SETTLE_MARGIN: Final = timedelta(seconds=2)
# With less than this no attempt is begun: it would be spent on nothing.
SHORTEST_ATTEMPT: Final = timedelta(seconds=1)
# A message may be received before a restored table has its event again.
YOUNG: Final = timedelta(minutes=15)
STORAGE_PAUSE: Final = timedelta(minutes=1)
# More attempts than any handler may declare.
UNCOUNTED: Final = 1_000_000


class Processor:
    """The processing use case.

    Args:
        handlers: gives a handler's function and what was declared with it, importing its module.
        lanes: the queue of the worker's own lane; all of them where it splits batches.
        clients: gives the client of a destination.
    """

    def __init__(  # noqa: PLR0913 - each a keyword of its own
        self,
        *,
        manifest: Manifest,
        handlers: Callable[[HandlerSpec], Registered],
        table: Table,
        lanes: Lanes,
        blobs: Blobs,
        secrets: SecretCache,
        executor: Executor,
        clock: Clock,
        randomness: Randomness,
        clients: Clients = no_clients,
    ) -> None:
        self._manifest = manifest
        self._table = table
        self._lanes = lanes
        self._blobs = blobs
        self._executor = executor
        self._clock = clock
        self._randomness = randomness
        self._gate = gate = Gate(table=table, clock=clock, randomness=randomness)
        self._precheck = Admission(
            manifest=manifest, table=table, controls=HandlerPauses(table, clock), gate=gate
        )
        self._turns = Turns(table=table, blobs=blobs, lanes=lanes)
        self._calling = Invoker(
            manifest=manifest,
            handlers=handlers,
            table=table,
            orders=Orders(table=table, lanes=lanes, clock=clock),
            jobs=Jobs(table=table, lanes=lanes, secrets=secrets, clock=clock),
            gate=gate,
            clients=clients,
            secrets=secrets,
            clock=clock,
        )
        self._splitter = Splitter(
            manifest=manifest,
            providers=providers.load,
            table=table,
            lanes=lanes,
            blobs=blobs,
            clock=clock,
        )
        self._conclusion = Settler(
            table=table, lanes=lanes, secrets=secrets, clock=clock, randomness=randomness
        )

    def process(self, message: Message, *, worker: Worker, deadline: datetime) -> RunResult:
        """Does what one message asks for; `deadline` is the invocation's end. Never raises."""
        try:
            reference = RunMessage.decode(message.body)
        except ForeignMessage as error:
            queue_policy_of(self._lanes, worker).bury(message)
            return RunResult(RunOutcome.FOREIGN, detail=str(error))
        try:
            return self._process(message, reference, worker, deadline)
        except Unavailable as error:
            return RunResult(RunOutcome.UNAVAILABLE, reference, detail=str(error))
        except LeaseLost as error:
            outcome = queue_policy_of(self._lanes, worker).outcome(RunOutcome.SUPERSEDED)
            return RunResult(outcome, reference, detail=str(error))

    def _process(
        self, message: Message, reference: RunMessage, worker: Worker, deadline: datetime
    ) -> RunResult:
        now = self._clock.now()
        if deadline - SETTLE_MARGIN - now < SHORTEST_ATTEMPT:
            return RunResult(RunOutcome.UNAVAILABLE, reference, detail="too little time is left")
        row = live(self._table.get(event_key(reference.source, reference.event_id)), now)
        if row is None:
            return self._eventless(message, reference, worker, now)
        event = event_from(row, b"")
        known = self._manifest.handlers.get(reference.handler)
        spec = known or _stranger(reference)
        try:
            turn = self._turns.look(row, event, spec, reference, worker, now)
            event, reference = turn.event, turn.reference
            checked = turn.checked or self._precheck.look(event, spec, reference, now)
            if (waits := checked.postponement) is not None:
                result = self._postpone(waits, event, spec, reference, message, worker, now)
                return replace(result, degraded=checked.degraded)
            run = claim(
                self._table,
                event=event,
                spec=spec,
                generation=reference.generation,
                message=message,
                lease=self._lease(worker, deadline),
                now=now,
            )
        except NotClaimable as refused:
            if refused.run is not None:
                extend_life(self._table, refused.run, event)
            return self._conclusion.refused(refused, spec, message, reference, worker)
        attempt = LeasedRun(run, message, reference, worker)
        if known is None:
            return self._conclusion.unknown_handler(attempt)
        return self._attempt(attempt, known, event, row, checked, deadline)

    def _postpone(
        self,
        waits: Deferral,
        event: StoredEvent,
        spec: HandlerSpec,
        reference: RunMessage,
        message: Message,
        worker: Worker,
        now: datetime,
    ) -> RunResult:
        """Lets a run wait that is not claimed."""
        queue_policy = queue_policy_of(self._lanes, worker)
        waits = queue_policy.postponed(waits, message, now)
        run = defer(
            self._table,
            event=event,
            spec=spec,
            generation=reference.generation,
            message=message,
            postponement=waits,
            now=now,
        )
        queue_policy.carry(run, PlannedWait(waits.due - self._clock.now(), waits.wait), message)
        kept = waits.wait is WaitStrategy.HIDDEN
        outcome = RunOutcome.DEFERRED_KEPT if kept else RunOutcome.DEFERRED
        return RunResult(outcome, reference, detail=waits.why)

    def _attempt(
        self,
        attempt: LeasedRun,
        spec: HandlerSpec,
        event: StoredEvent,
        row: Item,
        checked: AdmissionDecision,
        deadline: datetime,
    ) -> RunResult:
        """Makes the attempt that was claimed, and settles it."""
        journal = BatchProgress(attempt.run.progress)
        error = checked.instead or self._call(
            event, row, spec, attempt, checked.reservations, deadline, journal
        )
        attempt = replace(attempt, run=replace(attempt.run, progress=journal.progress))
        result = self._conclusion.of(attempt, spec, error)
        self._calling.settled(error, attempt.run, lane=attempt.worker.lane)
        degraded = (*checked.degraded, *self._gate.degraded())
        return replace(result, items=journal.items, degraded=degraded)

    def _lease(self, worker: Worker, deadline: datetime) -> Lease:
        until = deadline + LEASE_MARGIN
        return Lease(self._randomness.token(), worker.name, until, worker.code_version)

    def _eventless(
        self, message: Message, reference: RunMessage, worker: Worker, now: datetime
    ) -> RunResult:
        if message.sent_at > now - YOUNG:
            return RunResult(RunOutcome.UNAVAILABLE, reference, detail="the event is not there yet")
        queue_policy_of(self._lanes, worker).bury(message)
        return RunResult(RunOutcome.FOREIGN, reference, detail="no such event, or it has expired")

    def _call(
        self,
        event: StoredEvent,
        row: Item,
        spec: HandlerSpec,
        attempt: LeasedRun,
        reservations: Mapping[str, int],
        deadline: datetime,
        journal: BatchProgress,
    ) -> BaseException | None:
        """Runs the handler and returns what it raised."""
        try:
            event = replace(event, body=payloads.unpack(row, self._blobs))
        except Permanent as error:
            return error
        except Unavailable as error:
            # The handler has not begun: that storage is down costs the run no attempt.
            return Deferred(self._clock.now() + STORAGE_PAUSE, f"its body cannot be read: {error}")
        now, run = self._clock.now(), attempt.run
        end = min(deadline - SETTLE_MARGIN, now + timedelta(seconds=spec.timeout))

        def work() -> None:
            if spec.name == SPLIT:
                self._splitter.split(event, journal, lease=run.lease_id, end=end)
                return
            lane = attempt.worker.lane
            self._calling.call(event, spec, run, reservations=reservations, lane=lane, end=end)

        try:
            self._executor.run(work, seconds=max((end - now).total_seconds(), 0.0))
        except BaseException as error:  # noqa: BLE001 - a handler may raise anything, SystemExit too
            return error
        return None


def _stranger(reference: RunMessage) -> HandlerSpec:
    """Returns a declaration for a handler that is not in this deployment.

    Its attempts are not for this deployment to count: another may allow more of them.
    """
    name = reference.handler
    return HandlerSpec(name, "", "", reference.source, ("*",), max_attempts=UNCOUNTED)
