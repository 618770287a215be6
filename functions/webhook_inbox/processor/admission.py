"""Decides, before a run is leased, whether it may be attempted now.

    message ─┬─ FIFO lane: not due yet ──────────────────────► received again
             ├─ serial handler outside its FIFO lane ─────────► parked, then sent there
             ├─ serial handler, no ordering key in the body ──► dead
             ├─ serial handler, behind another run of its key ► parked in the key's line
             ├─ handler or tenant paused ─────────────────────► parked
             ├─ destination down, or over its rate ───────────► deferred, skipped, failed or dead
             └─ lease

A deferral counts no attempt. Pause and destination checks fail open: if the ledger cannot be read,
the run is admitted.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Final

from webhook_inbox.destinations.gate import WAITS_FOR, DestinationAdmission, Gate
from webhook_inbox.domain.errors import (
    Deferred,
    InboxError,
    Permanent,
    Skipped,
    Transient,
    Unavailable,
)
from webhook_inbox.domain.internal_errors import SkippedBecause
from webhook_inbox.domain.manifest import HandlerSpec, Manifest
from webhook_inbox.domain.model import SETTLED, Run, SkipReason, Status, StoredEvent, WaitStrategy
from webhook_inbox.domain.ports import Blobs, Clock, Item, Table
from webhook_inbox.ledger import payloads
from webhook_inbox.ledger.deferral import Deferral
from webhook_inbox.ledger.lease import CLOCK_SKEW, NotClaimable, Refusal
from webhook_inbox.ledger.pauses import (
    RECHECK,
    RESUMPTION,
    TENANT_RESUMPTION,
    HandlerPauses,
    TenantPauses,
)
from webhook_inbox.ledger.schema import run_from, run_key
from webhook_inbox.processor.settlement import SHORTEST_WAIT
from webhook_inbox.queue import message_groups
from webhook_inbox.queue.line import TURN, TURN_CHECK, Line
from webhook_inbox.queue.visibility import plan_wait

WAITING: Final = frozenset({Status.FAILED, Status.DEFERRED})
# The lease of such a run is refused, whatever its turn.
ENDED: Final = frozenset({*SETTLED, Status.HELD})


@dataclass(frozen=True, slots=True)
class AdmissionDecision:
    """The decision whether a run may be leased.

    Attributes:
        event: the event, with the ordering keys of its serial runs.
        generation: the generation to lease the run with.
        reservations: when the run may call its destinations, in epoch ms, by destination.
        deferral: what it waits for instead; None if it may be leased.
        instead: how the attempt ends without its handler being called; None if it is called.
        degraded: the checks that were skipped because the ledger did not answer.
        line: the line of its ordering key, None if it keeps no order.
        place: the number of its last known entry there, 0 for none.
    """

    event: StoredEvent
    generation: int
    reservations: Mapping[str, int] = field(default_factory=dict)
    deferral: Deferral | None = None
    instead: InboxError | None = None
    degraded: tuple[str, ...] = ()
    line: Line | None = None
    place: int = 0


class Admission:
    """Admits runs."""

    def __init__(
        self, *, manifest: Manifest, table: Table, blobs: Blobs, gate: Gate, clock: Clock
    ) -> None:
        self._manifest = manifest
        self._table = table
        self._blobs = blobs
        self._pauses = HandlerPauses(table, clock)
        self._tenants = TenantPauses(table, clock)
        self._gate = gate

    def admit(
        self,
        row: Item,
        event: StoredEvent,
        spec: HandlerSpec,
        generation: int,
        *,
        fifo: bool,
        now: datetime,
    ) -> AdmissionDecision:
        """Returns whether a message's run may be leased now.

        Args:
            row: the event's row, which has the body or the address of it.
            event: the event without its body.
            spec: the handler.
            generation: the message's.
            fifo: whether the message was received from a FIFO lane.
            now: the time.

        Raises:
            NotClaimable: the run is not due yet.
            Unavailable: in a FIFO lane or for a serial handler, the ledger or blob storage failed.
        """
        decision = AdmissionDecision(event, generation)
        run = self._run(event, spec) if fifo else None
        if run is not None:
            decision = _current(decision, spec, run, now)
        if spec.serial:
            ordering_key = decision.event.ordering_keys.get(spec.name)
            if fifo and ordering_key:
                line = Line(self._table, spec.name, ordering_key, blocks=spec.blocks)
                decision = replace(decision, line=line, place=run.place if run else 0)
                if run is None or run.status not in ENDED:
                    decision = _in_turn(decision, line, ordering_key, now)
            else:
                decision = self._misrouted(decision, row, spec, now)
        if decision.deferral or decision.instead:
            return decision
        paused = self._check_pause(decision, spec, now)
        return paused or self._check_destinations(decision, spec, run, now)

    def _run(self, event: StoredEvent, spec: HandlerSpec) -> Run | None:
        row = self._table.get(run_key(event.source, event.event_id, spec.name))
        return run_from(row) if row else None

    def _misrouted(
        self, decision: AdmissionDecision, row: Item, spec: HandlerSpec, now: datetime
    ) -> AdmissionDecision:
        """Parks a run that was sent before its handler was serial; dead without an ordering key."""
        known = decision.event.ordering_keys
        if spec.name not in known:
            try:
                body = payloads.unpack_event(row, self._table, self._blobs)
            except (Permanent, Skipped) as error:
                return replace(decision, instead=error)
            found = message_groups.ordering_keys_of([spec], body)
            if not found:
                return replace(decision, instead=Permanent(message_groups.missing(spec)))
            known = {**known, **found}
        why = f"it is re-sent through the FIFO lane for {known[spec.name]}"
        return replace(
            decision,
            event=replace(decision.event, ordering_keys=known),
            deferral=Deferral(now, WaitStrategy.PARKED, f"lane {spec.lane}", why),
        )

    def _check_pause(
        self, decision: AdmissionDecision, spec: HandlerSpec, now: datetime
    ) -> AdmissionDecision | None:
        paused = self._pauses.paused(spec.name)
        if paused is None:
            return self._check_tenant(decision, now)
        why = f"handler {spec.name} is paused: {paused}"
        return _parked(decision, RESUMPTION, why, now)

    def _check_tenant(self, decision: AdmissionDecision, now: datetime) -> AdmissionDecision | None:
        tenant = decision.event.tenant
        reason = self._tenants.paused(tenant)
        if reason is None:
            return None
        return _parked(decision, TENANT_RESUMPTION, f"tenant {tenant} is paused: {reason}", now)

    def _check_destinations(
        self, decision: AdmissionDecision, spec: HandlerSpec, run: Run | None, now: datetime
    ) -> AdmissionDecision:
        """Asks whether the handler's destinations may be called."""
        known = self._manifest.destinations
        if not known:
            return decision
        called = [known[name] for name in spec.destinations if name in known]
        # A call to an undeclared destination may have deferred the run; it keeps that reservation.
        # In a standard lane, a run of generation 0 never waited, so it has none.
        if run is None and decision.generation > 0:
            run = self._run_if_readable(decision.event, spec)
        kept = run.reservations if run else {}
        if not called:
            return replace(decision, reservations=kept)
        admission = self._gate.admit(called, kept=kept)
        decision = replace(decision, degraded=admission.degraded)
        if admission.go or admission.due is None:
            return replace(decision, reservations=admission.reservations)
        return self._refused(decision, spec, run, admission, now)

    def _run_if_readable(self, event: StoredEvent, spec: HandlerSpec) -> Run | None:
        try:
            return self._run(event, spec)
        except Unavailable:
            return None

    def _never_leased(self, event: StoredEvent, spec: HandlerSpec) -> bool:
        """Tells whether a run certainly was never leased, and so has had no effect."""
        try:
            run = self._run(event, spec)
        except Unavailable:
            return False
        return run is None or max(run.claims, run.attempt_count) == 0

    def _refused(
        self,
        decision: AdmissionDecision,
        spec: HandlerSpec,
        run: Run | None,
        admission: DestinationAdmission,
        now: datetime,
    ) -> AdmissionDecision:
        due = max(admission.due or now, now + SHORTEST_WAIT)
        if admission.on_limit == "drop" and self._never_leased(decision.event, spec):
            dropped = SkippedBecause(SkipReason.LIMIT, f"dropped: {admission.why}")
            return replace(decision, instead=dropped)
        if admission.on_limit in {"drop", "error"}:
            error = Transient(admission.why, refused=True, retry_after=due - now)
            return replace(decision, instead=error)
        began = (run.round_began_at if run else None) or now
        if due > began + timedelta(seconds=spec.max_age):
            return replace(decision, instead=Deferred(due, admission.why))
        wait = plan_wait(due - now).wait
        waits_for = WAITS_FOR + admission.destination
        deferral = Deferral(due, wait, waits_for, admission.why, admission.reservations)
        return replace(decision, deferral=deferral)


def _parked(
    decision: AdmissionDecision, waits_for: str, why: str, now: datetime
) -> AdmissionDecision:
    """Parks a run until a resumption."""
    waits = Deferral(now + RECHECK, WaitStrategy.PARKED, waits_for, why, counts=False)
    return replace(decision, deferral=waits)


def _in_turn(
    decision: AdmissionDecision, line: Line, ordering_key: str, now: datetime
) -> AdmissionDecision:
    """Parks a run that is not the head of its ordering key's line."""
    head = line.head(now)
    if head is None:
        return decision
    if head.event_id == decision.event.event_id:
        return replace(decision, place=head.number)
    why = f"it waits for its turn: the run of {head.event_id} is the first of {ordering_key}"
    turn = Deferral(now, WaitStrategy.PARKED, TURN, why, counts=False, check=now + TURN_CHECK)
    return replace(decision, deferral=turn)


def _current(
    decision: AdmissionDecision, spec: HandlerSpec, run: Run, now: datetime
) -> AdmissionDecision:
    """Replaces a FIFO message's stale fields with the run's current ones.

    A group's first message serves its run even after a replay or an approval sent another one: the
    new message is last in the group, so using it would break the order.

    Raises:
        NotClaimable: the run is not due yet.
    """
    due = run.next_attempt_at
    if run.status in WAITING and due is not None and due > now + CLOCK_SKEW:
        raise NotClaimable(Refusal.NOT_DUE, run)
    event, keys = decision.event, decision.event.ordering_keys
    if run.ordering_key:
        event = replace(event, ordering_keys={spec.name: run.ordering_key, **keys})
    return replace(decision, event=event, generation=max(run.generation, decision.generation))
