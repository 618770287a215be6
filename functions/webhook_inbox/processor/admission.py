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

from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
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
from webhook_inbox.domain.manifest import Manifest
from webhook_inbox.domain.model import SETTLED, Run, SkipReason, Status, WaitStrategy
from webhook_inbox.domain.ports import Ports
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
from webhook_inbox.ledger.schema import key_of_run, run_from
from webhook_inbox.processor.attempt import RunAttempt
from webhook_inbox.processor.settlement import SHORTEST_WAIT
from webhook_inbox.queue import message_groups
from webhook_inbox.queue.line import TURN, TURN_CHECK, Line
from webhook_inbox.queue.visibility import plan_wait

WAITING: Final = frozenset({Status.FAILED, Status.DEFERRED})
# The lease of such a run is refused, whatever its turn.
ENDED: Final = frozenset({*SETTLED, Status.HELD})


class Admission:
    """Admits runs."""

    def __init__(self, manifest: Manifest, ports: Ports, gate: Gate) -> None:
        self._manifest = manifest
        self._table = ports.table
        self._blobs = ports.blobs
        self._pauses = HandlerPauses(ports.table, ports.clock)
        self._tenants = TenantPauses(ports.table, ports.clock)
        self._gate = gate

    def admit(self, attempt: RunAttempt) -> RunAttempt:
        """Returns the attempt with the decision whether its run may be leased now.

        Raises:
            NotClaimable: the run is not due yet.
            Unavailable: in a FIFO lane or for a serial handler, the ledger or blob storage failed.
        """
        spec, fifo = attempt.spec, attempt.policy.fifo
        if fifo:
            attempt = _current(replace(attempt, run=self._run(attempt) or attempt.run))
        if spec.serial:
            ordering_key = attempt.event.ordering_keys.get(spec.name)
            if fifo and ordering_key:
                line = Line(self._table, spec.name, ordering_key, blocks=spec.blocks)
                attempt = replace(attempt, line=line)
                if attempt.run.status not in ENDED:
                    attempt = _in_turn(attempt, line, ordering_key)
            else:
                attempt = self._misrouted(attempt)
        if attempt.deferral or attempt.error_without_call:
            return attempt
        return self._check_pause(attempt) or self._check_destinations(attempt)

    def _run(self, attempt: RunAttempt) -> Run | None:
        row = self._table.get(key_of_run(attempt.run))
        return run_from(row) if row else None

    def _misrouted(self, attempt: RunAttempt) -> RunAttempt:
        """Parks a run that was sent before its handler was serial; dead without an ordering key."""
        spec, known = attempt.spec, attempt.event.ordering_keys
        if spec.name not in known:
            try:
                body = payloads.unpack_event(attempt.row, self._table, self._blobs)
            except (Permanent, Skipped) as error:
                return replace(attempt, error_without_call=error)
            found = message_groups.ordering_keys_of([spec], body)
            if not found:
                missing = Permanent(message_groups.missing(spec))
                return replace(attempt, error_without_call=missing)
            known = {**known, **found}
        why = f"it is re-sent through the FIFO lane for {known[spec.name]}"
        return replace(
            attempt,
            event=replace(attempt.event, ordering_keys=known),
            deferral=Deferral(attempt.now, WaitStrategy.PARKED, f"lane {spec.lane}", why),
        )

    def _check_pause(self, attempt: RunAttempt) -> RunAttempt | None:
        handler, tenant = attempt.spec.name, attempt.event.tenant
        paused = self._pauses.paused(handler)
        if paused is not None:
            return _parked(attempt, RESUMPTION, f"handler {handler} is paused: {paused}")
        reason = self._tenants.paused(tenant)
        if reason is not None:
            return _parked(attempt, TENANT_RESUMPTION, f"tenant {tenant} is paused: {reason}")
        return None

    def _check_destinations(self, attempt: RunAttempt) -> RunAttempt:
        """Asks whether the handler's destinations may be called."""
        known = self._manifest.destinations
        if not known:
            return attempt
        called = [known[name] for name in attempt.spec.destinations if name in known]
        # A call to an undeclared destination may have deferred the run; it keeps that reservation.
        # In a standard lane, a run of generation 0 never waited, so it has none.
        if not attempt.policy.fifo and attempt.reference.generation > 0:
            with suppress(Unavailable):
                attempt = replace(attempt, run=self._run(attempt) or attempt.run)
        kept = attempt.run.reservations
        if not called:
            return replace(attempt, reservations=kept)
        admission = self._gate.admit(called, kept=kept)
        attempt = replace(attempt, degraded=admission.degraded)
        if admission.go or admission.due is None:
            return replace(attempt, reservations=admission.reservations)
        return self._refused(attempt, admission)

    def _never_leased(self, attempt: RunAttempt) -> bool:
        """Tells whether a run certainly was never leased, and so has had no effect."""
        try:
            run = self._run(attempt)
        except Unavailable:
            return False
        return run is None or max(run.claims, run.attempt_count) == 0

    def _refused(self, attempt: RunAttempt, admission: DestinationAdmission) -> RunAttempt:
        now = attempt.now
        due = max(admission.due or now, now + SHORTEST_WAIT)
        error: InboxError | None = None
        if admission.on_limit == "drop" and self._never_leased(attempt):
            error = SkippedBecause(SkipReason.LIMIT, f"dropped: {admission.why}")
        elif admission.on_limit in {"drop", "error"}:
            error = Transient(admission.why, refused=True, retry_after=due - now)
        elif due > (attempt.run.round_began_at or now) + timedelta(seconds=attempt.spec.max_age):
            error = Deferred(due, admission.why)
        if error is not None:
            return replace(attempt, error_without_call=error)
        wait = plan_wait(due - now).wait
        waits_for = WAITS_FOR + admission.destination
        deferral = Deferral(due, wait, waits_for, admission.why, admission.reservations)
        return replace(attempt, deferral=deferral)


def _parked(attempt: RunAttempt, waits_for: str, why: str) -> RunAttempt:
    """Parks a run until a resumption."""
    due = attempt.now + RECHECK
    deferral = Deferral(due, WaitStrategy.PARKED, waits_for, why, counts=False)
    return replace(attempt, deferral=deferral)


def _in_turn(attempt: RunAttempt, line: Line, ordering_key: str) -> RunAttempt:
    """Parks a run that is not the head of its ordering key's line."""
    now = attempt.now
    head = line.head(now)
    if head is None:
        return attempt
    if head.event_id == attempt.event.event_id:
        return replace(attempt, run=replace(attempt.run, place=head.number))
    why = f"it waits for its turn: the run of {head.event_id} is the first of {ordering_key}"
    turn = Deferral(now, WaitStrategy.PARKED, TURN, why, counts=False, check=now + TURN_CHECK)
    return replace(attempt, deferral=turn)


def _current(attempt: RunAttempt) -> RunAttempt:
    """Replaces a FIFO message's stale fields with the run's current ones.

    A group's first message serves its run even after a replay or an approval sent another one: the
    new message is last in the group, so using it would break the order.

    Raises:
        NotClaimable: the run is not due yet.
    """
    run, event, reference = attempt.run, attempt.event, attempt.reference
    due = run.next_attempt_at
    if run.status in WAITING and due is not None and due > attempt.now + CLOCK_SKEW:
        raise NotClaimable(Refusal.NOT_DUE, run)
    if run.ordering_key:
        keys = {attempt.spec.name: run.ordering_key, **event.ordering_keys}
        event = replace(event, ordering_keys=keys)
    generation = max(run.generation, reference.generation)
    return replace(attempt, event=event, reference=replace(reference, generation=generation))
