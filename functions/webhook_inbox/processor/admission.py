"""What is looked up before a run is claimed: is its handler paused, may its destinations be called?

A run that has to wait is postponed then: no attempt is begun, none is spent. What cannot be asked
stops nobody.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from webhook_inbox.destinations.gate import DestinationAdmission, Gate
from webhook_inbox.domain.errors import Deferred, InboxError, Skipped, Transient, Unavailable
from webhook_inbox.domain.manifest import HandlerSpec, Manifest
from webhook_inbox.domain.model import Run, StoredEvent, WaitStrategy
from webhook_inbox.domain.ports import Table
from webhook_inbox.ledger.deferral import Deferral
from webhook_inbox.ledger.pauses import RECHECK, RESUMPTION, HandlerPauses
from webhook_inbox.ledger.schema import run_from, run_key
from webhook_inbox.processor.settlement import SHORTEST_WAIT
from webhook_inbox.queue.message import RunMessage
from webhook_inbox.queue.visibility import plan_wait


@dataclass(frozen=True, slots=True)
class AdmissionDecision:
    """What was found.

    Attributes:
        reservations: when the run may call its destinations, in ms, by destination.
        postponement: what it has to wait for instead of being claimed.
        instead: how its attempt ends without its handler being called.
        degraded: what could not be asked.
    """

    reservations: Mapping[str, int] = field(default_factory=dict)
    postponement: Deferral | None = None
    instead: InboxError | None = None
    degraded: tuple[str, ...] = ()


class Admission:
    """Looks before a claim."""

    def __init__(
        self, *, manifest: Manifest, table: Table, controls: HandlerPauses, gate: Gate
    ) -> None:
        self._manifest = manifest
        self._table = table
        self._controls = controls
        self._gate = gate

    def look(
        self, event: StoredEvent, spec: HandlerSpec, reference: RunMessage, now: datetime
    ) -> AdmissionDecision:
        """Returns whether a run may be claimed now. Never raises."""
        paused = self._controls.paused(spec.name)
        if paused is not None:
            why = f"handler {spec.name} is paused: {paused}"
            waits = Deferral(now + RECHECK, WaitStrategy.PARKED, RESUMPTION, why, counts=False)
            return AdmissionDecision(postponement=waits)
        known = self._manifest.destinations
        if not known:
            return AdmissionDecision()
        called = [known[name] for name in spec.destinations if name in known]
        # A call of one that is not declared may have put the run off, and it keeps that turn.
        run = self._run(event, spec, reference)
        kept = run.reservations if run else {}
        if not called:
            return AdmissionDecision(kept)
        admission = self._gate.admit(called, kept=kept)
        if admission.go or admission.due is None:
            return AdmissionDecision(admission.reservations, degraded=admission.degraded)
        return self._waits(event, spec, run, admission, now)

    def _run(self, event: StoredEvent, spec: HandlerSpec, reference: RunMessage) -> Run | None:
        if reference.generation == 0:
            return None  # It never waited, so it was given no reservation.
        try:
            return self._read(event, spec)
        except Unavailable:
            return None

    def _read(self, event: StoredEvent, spec: HandlerSpec) -> Run | None:
        row = self._table.get(run_key(event.source, event.event_id, spec.name))
        return run_from(row) if row else None

    def _begun(self, event: StoredEvent, spec: HandlerSpec) -> bool:
        """Tells whether a run was ever claimed, and may have done things, or left them in doubt."""
        try:
            run = self._read(event, spec)
        except Unavailable:
            return True
        return run is not None and max(run.claims, run.attempt_count) > 0

    def _waits(
        self,
        event: StoredEvent,
        spec: HandlerSpec,
        run: Run | None,
        admission: DestinationAdmission,
        now: datetime,
    ) -> AdmissionDecision:
        due = max(admission.due or now, now + SHORTEST_WAIT)
        if admission.on_limit == "drop" and not self._begun(event, spec):
            return AdmissionDecision(instead=Skipped(f"dropped: {admission.why}"))
        if admission.on_limit in {"drop", "error"}:
            return AdmissionDecision(
                instead=Transient(admission.why, refused=True, retry_after=due - now)
            )
        began = (run.round_began_at if run else None) or now
        if due > began + timedelta(seconds=spec.max_age):
            return AdmissionDecision(instead=Deferred(due, admission.why))
        wait = plan_wait(due - now, may_hide=False).wait
        waits_for = f"destination {admission.destination}"
        return AdmissionDecision(
            postponement=Deferral(due, wait, waits_for, admission.why, admission.reservations),
            degraded=admission.degraded,
        )
