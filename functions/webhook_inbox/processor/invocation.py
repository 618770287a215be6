"""Calls the handler of a leased run.

    call chain ──► order ──► policy ──► handler

Each of the first three may end the attempt by raising an error.
"""

from collections.abc import Callable
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING

from webhook_inbox.destinations.gate import Gate
from webhook_inbox.destinations.propagation import CallChain
from webhook_inbox.domain.manifest import SMOKE, HandlerSpec, Manifest
from webhook_inbox.domain.model import Run, StoredEvent
from webhook_inbox.domain.ports import Ports
from webhook_inbox.domain.trace import Trace
from webhook_inbox.handlers.approvals.gate import ApprovalGate, ApprovalPending
from webhook_inbox.handlers.completions.jobs import Jobs
from webhook_inbox.handlers.context import Context
from webhook_inbox.handlers.effects.effect import Effects
from webhook_inbox.handlers.effects.journal import EffectJournal
from webhook_inbox.handlers.event import Event
from webhook_inbox.handlers.ordering.turns import Orders
from webhook_inbox.handlers.policies import enforce
from webhook_inbox.handlers.router import Registered
from webhook_inbox.processor.attempt import RunAttempt
from webhook_inbox.processor.smoke import smoke_handler

if TYPE_CHECKING:
    from webhook_inbox.handlers.approvals.announcer import Announcer


class Invoker:
    """Calls handlers.

    Args:
        manifest: the deployed manifest.
        ports: its `clients` are those of handlers.
        gate: protects the destinations.
        handlers: returns a handler; imports its module.
        api_url: the inbox's URL, with which the links of requests for approval begin.
    """

    def __init__(
        self,
        manifest: Manifest,
        ports: Ports,
        gate: Gate,
        *,
        handlers: Callable[[HandlerSpec], Registered],
        api_url: str,
    ) -> None:
        self._manifest = manifest
        self._ports = ports
        self._gate = gate
        self._handlers = handlers
        self._api_url = api_url
        self._orders = Orders(ports)
        self._jobs = Jobs(ports)
        self._secrets = ports.secrets

    def call(self, attempt: RunAttempt, *, effects: dict[str, str], end: datetime) -> None:
        """Calls the handler of a leased run.

        Args:
            attempt: the attempt; its event has its body.
            effects: receives the outcome of each effect by name.
            end: when the attempt is ended.

        Raises:
            BaseException: the run is not done.
        """
        spec, run = attempt.spec, attempt.run
        chain = CallChain.read(attempt.event.headers)
        if not run.forced:
            chain.check(spec.name)
        # The module is imported within the attempt's time limit: a module that hangs or kills the
        # process costs an attempt, like a handler that does.
        registered = smoke_handler(run) if spec.name == SMOKE else self._handlers(spec)
        handed = _handed(attempt.event, registered)
        approval_gate = self._approval_gate(attempt)
        context = self._context(attempt, chain, effects, end, approval_gate)
        body = handed.json() if spec.order else None
        lane = attempt.policy.worker.lane
        with self._orders.turn(spec, run, body, backfill=registered.backfill, lane=lane):
            if registered.policy is not None:
                enforce(registered.policy(handed, context), run.approvals)
            try:
                registered.function(handed, context)
                context.effects.require_answers()
            except ApprovalPending as pending:
                self._announcer.announce(pending, approval_gate, context, end=end)
                raise

    def settled(self, error: BaseException | None, attempt: RunAttempt) -> None:
        """Completes orders and jobs after the run was settled with `error`. Never raises."""
        run, lane = attempt.run, attempt.policy.worker.lane
        self._orders.settled(error, run, lane=lane)
        self._jobs.settled(error, run, lane=lane)
        if isinstance(error, ApprovalPending):
            from webhook_inbox.handlers.approvals.wake import ApprovalWake  # noqa: PLC0415

            ApprovalWake(self._ports).settled(error.request, run, lane=lane)

    @cached_property
    def _announcer(self) -> "Announcer":
        # Loaded with the first request: few deployments have approvers.
        from webhook_inbox.handlers.approvals.announcer import Announcer  # noqa: PLC0415

        return Announcer(self._manifest.approvers, self._ports, api_url=self._api_url)

    def _approval_gate(self, attempt: RunAttempt) -> ApprovalGate:
        return ApprovalGate(
            self._ports,
            attempt.run,
            self._manifest.approvers,
            attempt.event.received_at,
            hide=lambda text: attempt.personal.hide(self._secrets.redact(text)),
        )

    def _context(
        self,
        attempt: RunAttempt,
        chain: CallChain,
        outcomes: dict[str, str],
        end: datetime,
        approval_gate: ApprovalGate,
    ) -> Context:
        event, run = attempt.event, attempt.run
        effects = Effects(
            EffectJournal(self._ports.table, run, received_at=event.received_at),
            run,
            clock=self._ports.clock,
            end=end,
            redact=self._secrets.redact,
            hide=attempt.personal.hide,
            outcomes=outcomes,
            check_approval=approval_gate.refusal,
        )
        return Context(
            source=event.source,
            event_id=event.event_id,
            handler=run.handler,
            attempt=run.attempt_count,
            deadline=end,
            destinations=self._manifest.destinations,
            secrets=self._secrets.get,
            effects=effects,
            waiting=self._jobs.of(run, effects, received_at=event.received_at),
            gate=self._gate,
            clients=self._ports.clients,
            traceparent=span_of(event, run).traceparent,
            call_chain=chain,
            reservations=dict(attempt.reservations),
            approvals=run.approvals,
            key_version=run.key_version,
        )


def span_of(event: StoredEvent, run: Run) -> Trace:
    """Returns the event's trace with the span of the run's attempt."""
    source, event_id = event.source, event.event_id
    trace = Trace.of(event.headers, source=source, event_id=event_id)
    return trace.attempt(source, event_id, run.handler, run.attempt_count)


def _handed(event: StoredEvent, registered: Registered) -> Event:
    return Event(
        source=event.source,
        id=event.event_id,
        type=event.type,
        received_at=event.received_at,
        headers=event.headers,
        body=event.body,
        occurred_at=event.occurred_at,
        agent=event.agent,
        tenant=event.tenant,
        versions=registered.versions,
    )
