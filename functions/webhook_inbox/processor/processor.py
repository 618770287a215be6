"""Processes one message: admits, leases, invokes and settles its run.

    message ──► event row ──► admission ──► lease ──► handler ──► settlement ──► message
                                  └─ deferred
A deferral counts no attempt.
"""

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, Final

from webhook_inbox import providers
from webhook_inbox.destinations.gate import Gate
from webhook_inbox.domain.errors import Deferred, ForeignMessage, Permanent, Skipped, Unavailable
from webhook_inbox.domain.internal_errors import Postponed
from webhook_inbox.domain.manifest import SMOKE, SPLIT, HandlerSpec, Manifest
from webhook_inbox.domain.model import Run, Status, StoredEvent, WaitStrategy
from webhook_inbox.domain.personal import PersonalTexts
from webhook_inbox.domain.ports import Message, Ports
from webhook_inbox.handlers.router import Registered
from webhook_inbox.ingest.batches import BatchProgress, Splitter
from webhook_inbox.ledger import payloads
from webhook_inbox.ledger.deferral import Deferral, defer
from webhook_inbox.ledger.due_handlers import DueHandlers
from webhook_inbox.ledger.lease import Lease, NotClaimable, Refusal, claim, has_died
from webhook_inbox.ledger.schema import RUN_LIFE, event_from, event_key, live, run_from, run_key
from webhook_inbox.ledger.settle import LeaseLost, extend_life, is_of_earlier_event
from webhook_inbox.processor.admission import Admission
from webhook_inbox.processor.attempt import RunAttempt
from webhook_inbox.processor.invocation import Invoker, span_of
from webhook_inbox.processor.settlement import Settler
from webhook_inbox.queue.lanes import Lanes
from webhook_inbox.queue.line import TURN, Line
from webhook_inbox.queue.message import RunMessage
from webhook_inbox.queue.outcomes import Observed, RunOutcome, RunResult, Worker
from webhook_inbox.queue.visibility import PlannedWait, StandardQueuePolicy, queue_policy_of

# A lease outlasts the invocation, so that no worker runs past its lease.
LEASE_MARGIN: Final = timedelta(seconds=5)
# The part of the invocation that is reserved for settling.
SETTLE_MARGIN: Final = timedelta(seconds=2)
# With less time than this no attempt is made: it would be wasted.
SHORTEST_ATTEMPT: Final = timedelta(seconds=1)
# A message without its event is retried for this long: a table restore may still add the event.
MISSING_EVENT_GRACE: Final = timedelta(minutes=15)
STORAGE_PAUSE: Final = timedelta(minutes=1)
# More attempts than any handler may declare.
UNLIMITED_ATTEMPTS: Final = 1_000_000


class Processor:
    """The processing use case.

    Args:
        handlers: returns a handler's function and declarations; imports its module.
        api_url: the inbox's URL, with which the links of requests for approval begin.
    """

    def __init__(
        self,
        manifest: Manifest,
        ports: Ports,
        *,
        handlers: Callable[[HandlerSpec], Registered],
        api_url: str = "",
    ) -> None:
        self._manifest = manifest
        self._table = ports.table
        self._lanes = Lanes(ports.queues)
        self._blobs = ports.blobs
        self._executor = ports.executor
        self._clock = ports.clock
        self._randomness = ports.randomness
        self._listed = DueHandlers(ports.table)
        # The worker's one gate: it caches reads.
        self._gate = Gate(ports)
        self._admission = Admission(manifest, ports, self._gate)
        self._invoker = Invoker(manifest, ports, self._gate, handlers=handlers, api_url=api_url)
        self._splitter = Splitter(manifest, ports, providers=providers.load)
        self._personal = PersonalTexts()
        self._settler = Settler(ports)

    def hide(self, text: str) -> str:
        """Removes the personal fields of the latest message's event from a text."""
        return self._personal.hide(text)

    def process(self, message: Message, *, worker: Worker, deadline: datetime) -> RunResult:
        """Processes one message; `deadline` is the invocation's end. Never raises."""
        policy = queue_policy_of(self._lanes, worker, message)
        try:
            reference = RunMessage.decode(message.body)
        except ForeignMessage as error:
            policy.move_to_dlq()
            return RunResult(RunOutcome.FOREIGN, detail=str(error))
        try:
            return self._process(reference, policy, deadline)
        except Unavailable as error:
            policy.outlast()
            return RunResult(RunOutcome.UNAVAILABLE, reference, detail=str(error))
        except LeaseLost as error:
            return RunResult(
                RunOutcome.SUPERSEDED, reference, detail=str(error), keeps_message=policy.fifo
            )

    def _process(
        self, reference: RunMessage, policy: StandardQueuePolicy, deadline: datetime
    ) -> RunResult:
        now = self._clock.now()
        if deadline - SETTLE_MARGIN - now < SHORTEST_ATTEMPT:
            return RunResult(RunOutcome.UNAVAILABLE, reference, detail="too little time is left")
        # A first receive is spared this read: its claim is refused if the run is dead.
        run = self._run(reference) if policy.received_before else None
        if run is not None and has_died(run, reference.generation, policy.message):
            policy.move_to_dlq()
            return RunResult(RunOutcome.TO_DLQ, reference, detail=str(Refusal.DEAD))
        row = live(self._table.get(event_key(reference.source, reference.event_id)), now)
        if row is None:
            return _missing_event(reference, policy, now)
        event = event_from(row, b"")
        self._listed.ensure(reference.handler, until=event.received_at + RUN_LIFE)
        source = self._manifest.sources.get(event.source)
        self._personal = PersonalTexts(source.personal if source else ())
        return self._admit(
            RunAttempt(
                reference,
                policy,
                deadline,
                now,
                row,
                event,
                self._manifest.handler(reference.handler) or _unknown_handler(reference),
                run or _not_begun(reference, event),
                self._personal,
            )
        )

    def _admit(self, attempt: RunAttempt) -> RunResult:
        """Admits, leases and attempts a run."""
        try:
            if attempt.policy.is_last_receive:
                attempt = replace(attempt, deferral=_replacement(attempt))
            else:
                attempt = self._admission.admit(attempt)
            if attempt.deferral is not None:
                return self._defer(
                    attempt, attempt.policy.before_lease(attempt.deferral, attempt.now)
                )
            attempt = self._lease(attempt)
        except NotClaimable as refused:
            return self._refused(attempt, refused)
        run, spec = attempt.run, attempt.spec
        if attempt.line is None and run.place:
            # Its handler was serial when it entered; the runs behind it still wait for it.
            line = Line(self._table, spec.name, run.ordering_key, blocks=spec.blocks)
            attempt = replace(attempt, line=line)
        if self._manifest.handler(spec.name) is None:
            return self._settler.unknown_handler(attempt)
        return self._attempt(attempt)

    def _refused(self, attempt: RunAttempt, refused: NotClaimable) -> RunResult:
        found = refused.run
        if found is not None:
            if _died_before(found, attempt):
                again = replace(attempt.reference, generation=found.generation)
                return self._process(again, attempt.policy, attempt.deadline)
            extend_life(self._table, found, attempt.event)
            attempt = replace(attempt, run=found)
        return self._settler.refused(attempt, refused.refusal)

    def _lease(self, attempt: RunAttempt) -> RunAttempt:
        worker, until = attempt.policy.worker, attempt.deadline + LEASE_MARGIN
        run = claim(
            self._table,
            event=attempt.event,
            spec=attempt.spec,
            generation=attempt.reference.generation,
            message=attempt.policy.message,
            lease=Lease(self._randomness.token(), worker.name, until, worker.code_version),
            now=attempt.now,
        )
        return replace(attempt, run=replace(run, place=attempt.run.place or run.place))

    def _run(self, reference: RunMessage) -> Run | None:
        key = run_key(reference.source, reference.event_id, reference.handler)
        row = self._table.get(key)
        return run_from(row) if row else None

    def _defer(self, attempt: RunAttempt, deferral: Deferral) -> RunResult:
        """Defers a run that is not leased."""
        now, policy = attempt.now, attempt.policy
        if attempt.line is not None and deferral.wait is WaitStrategy.PARKED:
            # Before the run is parked: its message still blocks its group.
            attempt = attempt.in_line(now)
            deferral = replace(deferral, place=attempt.run.place)
        run = defer(
            self._table,
            event=attempt.event,
            spec=attempt.spec,
            generation=attempt.reference.generation,
            message=policy.message,
            deferral=deferral,
            now=now,
        )
        if deferral.waits_for == TURN:
            # The run before it may have ended after the line was read and before it entered.
            attempt.advance_line(now, ended=False)
        planned = PlannedWait(deferral.due - self._clock.now(), deferral.wait)
        keeps = policy.wait(run, planned)
        return RunResult(
            RunOutcome.DEFERRED,
            attempt.reference,
            detail=deferral.why,
            due=deferral.due,
            degraded=attempt.degraded,
            observed=_observed(attempt.event, run),
            keeps_message=keeps,
        )

    def _attempt(self, attempt: RunAttempt) -> RunResult:
        """Makes the attempt that a lease was taken for, and settles it."""
        journal = BatchProgress(attempt.run.progress)
        effects: dict[str, str] = {}
        begun = self._clock.now()
        error = attempt.error_without_call or self._call(attempt, journal, effects)
        taken, waits = self._clock.now() - begun, self._gate.waits()
        if error is not None:
            attempt.personal.erased = self._erased_since(attempt, error)
        attempt = replace(attempt, run=replace(attempt.run, progress=journal.progress))
        wait = next((waits[name] for name in attempt.spec.destinations if name in waits), None)
        result = self._settler.settle(attempt, error, wait=wait)
        self._invoker.settled(error, attempt)
        return replace(
            result,
            items=journal.items,
            degraded=(*attempt.degraded, *self._gate.degraded()),
            observed=_observed(attempt.event, attempt.run, taken=taken, effects=dict(effects)),
            received_at=attempt.event.received_at,
        )

    def _erased_since(self, attempt: RunAttempt, error: BaseException) -> bool:
        """Tells whether the payload was erased after an attempt that ends with a text has read it.

        An erasure before the lease has not seen this attempt, and may have reported no text.
        """
        if not attempt.personal.body or isinstance(error, Postponed):
            return False  # Its text does not come from the handler.
        key = event_key(attempt.run.source, attempt.run.event_id)
        return "erased_at" in (self._table.get(key) or {})

    def _call(
        self, attempt: RunAttempt, journal: BatchProgress, effects: dict[str, str]
    ) -> BaseException | None:
        """Runs the handler and returns the error that it raised."""
        try:
            body = payloads.unpack_event(attempt.row, self._table, self._blobs)
        except (Permanent, Skipped) as error:
            return error
        except Unavailable as error:
            # The handler has not been called: a storage outage must not cost an attempt.
            return Deferred(self._clock.now() + STORAGE_PAUSE, f"its body cannot be read: {error}")
        attempt = replace(attempt, event=replace(attempt.event, body=body))
        attempt.personal.body = body
        now, spec = self._clock.now(), attempt.spec
        end = min(attempt.deadline - SETTLE_MARGIN, now + timedelta(seconds=spec.timeout))

        def work() -> None:
            if spec.name == SPLIT:
                self._splitter.split(attempt.event, journal, lease=attempt.run.lease_id, end=end)
                return
            self._invoker.call(attempt, effects=effects, end=end)

        try:
            self._executor.run(work, seconds=max((end - now).total_seconds(), 0.0))
        except BaseException as error:  # noqa: BLE001 - a handler may raise anything, SystemExit too
            return error
        return None


def _observed(event: StoredEvent, run: Run, **more: Any) -> Observed:
    return Observed(event.type, span_of(event, run), **more)


def _died_before(run: Run, attempt: RunAttempt) -> bool:
    """Tells whether a run died for an earlier event of this id, and its generation differs.

    Ingest sends generation 0, since it does not read the run.
    """
    message = attempt.policy.message
    dead = run.status is Status.DEAD_LETTER and not has_died(run, run.generation, message)
    other = run.generation != attempt.reference.generation
    return dead and other and is_of_earlier_event(run, attempt.event)


def _missing_event(reference: RunMessage, policy: StandardQueuePolicy, now: datetime) -> RunResult:
    if reference.source == SMOKE:
        detail = "its smoke test has ended"
        return RunResult(RunOutcome.DELETED, reference, detail=detail, keeps_message=False)
    if policy.message.sent_at > now - MISSING_EVENT_GRACE:
        return RunResult(RunOutcome.UNAVAILABLE, reference, detail="the event is not there yet")
    policy.move_to_dlq()
    return RunResult(RunOutcome.FOREIGN, reference, detail="no such event, or it has expired")


def _replacement(attempt: RunAttempt) -> Deferral:
    """Returns the deferral that replaces a message at its last receive.

    If a worker crashed in an attempt now, SQS would move the message of a live run to the DLQ.
    """
    receives, kept = attempt.policy.message.receive_count, attempt.run.reservations
    why = f"its message was received {receives} times without a result"
    return Deferral(attempt.now, WaitStrategy.COPY, waits_for="", why=why, reservations=kept)


def _not_begun(reference: RunMessage, event: StoredEvent) -> Run:
    run = event.source, event.event_id, reference.handler, event.type
    return Run(*run, Status.PENDING, reference.generation)


def _unknown_handler(reference: RunMessage) -> HandlerSpec:
    """Returns a stand-in without an attempt limit, since another deployment may define one."""
    name = reference.handler
    return HandlerSpec(name, "", "", reference.source, ("*",), max_attempts=UNLIMITED_ATTEMPTS)
