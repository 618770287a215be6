"""Whose turn it is, asked before a run is claimed: for serial handlers and in FIFO lanes.

its message ─┬─ in no FIFO lane: parked, so that the reconciler sends it to its own
             ├─ not due yet: stays
             ├─ in order with nothing: dies
             ├─ behind a dead one that blocks its ordering key: waits
             └─ may be claimed, with whatever generation the run has
"""

from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from webhook_inbox.domain.errors import Permanent
from webhook_inbox.domain.manifest import HandlerSpec
from webhook_inbox.domain.model import Status, StoredEvent, WaitStrategy
from webhook_inbox.domain.ports import Blobs, Item, Table
from webhook_inbox.ledger import payloads
from webhook_inbox.ledger.deferral import Deferral
from webhook_inbox.ledger.lease import CLOCK_SKEW, NotClaimable, Refusal
from webhook_inbox.ledger.schema import run_from, run_key
from webhook_inbox.processor.admission import AdmissionDecision
from webhook_inbox.queue import message_groups
from webhook_inbox.queue.lanes import Lanes
from webhook_inbox.queue.message import RunMessage
from webhook_inbox.queue.message_groups import missing, ordering_keys_of
from webhook_inbox.queue.outcomes import Worker

WAITING: Final = frozenset({Status.FAILED, Status.DEFERRED})


@dataclass(frozen=True, slots=True)
class Turn:
    """What was found.

    Attributes:
        event: the event, which knows what its run is in order with.
        reference: what the message stands for by now.
        checked: what happens instead of a look at the run's handler and destinations.
    """

    event: StoredEvent
    reference: RunMessage
    checked: AdmissionDecision | None = None


class Turns:
    """Asks whose turn it is."""

    def __init__(self, *, table: Table, blobs: Blobs, lanes: Lanes) -> None:
        self._table = table
        self._blobs = blobs
        self._lanes = lanes

    def look(
        self,
        row: Item,
        event: StoredEvent,
        spec: HandlerSpec,
        reference: RunMessage,
        worker: Worker,
        now: datetime,
    ) -> Turn:
        """Returns whether it is a run's turn; `row` is its event's.

        Raises:
            NotClaimable: it is not due yet.
            Unavailable: the ledger or the bodies' storage failed.
        """
        turn = Turn(event, reference)
        if self._lanes.queue(worker.lane).fifo:
            turn = self._present(turn, spec, now)
            if spec.serial and turn.event.ordering_keys.get(spec.name):
                return self._behind(turn, spec, now)
        return self._astray(turn, row, spec, now) if spec.serial else turn

    def _present(self, turn: Turn, spec: HandlerSpec, now: datetime) -> Turn:
        """Brings what the message says up to date.

        The first of its group stands for its run also when that was replayed or approved since:
        the message that was sent for it then comes last, and the order would be lost.
        """
        event = turn.event
        row = self._table.get(run_key(event.source, event.event_id, spec.name))
        if row is None:
            return turn
        run = run_from(row)
        due = run.next_attempt_at
        if run.status in WAITING and due is not None and due > now + CLOCK_SKEW:
            raise NotClaimable(Refusal.NOT_DUE, run)
        generation = max(run.generation, turn.reference.generation)
        known = (
            {spec.name: run.ordering_key, **event.ordering_keys}
            if run.ordering_key
            else event.ordering_keys
        )
        reference = replace(turn.reference, generation=generation)
        return Turn(replace(event, ordering_keys=known), reference)

    def _behind(self, turn: Turn, spec: HandlerSpec, now: datetime) -> Turn:
        ordering_key = turn.event.ordering_keys[spec.name]
        found = message_groups.blocker(
            self._table, spec, ordering_key=ordering_key, event_id=turn.event.event_id, now=now
        )
        if found is None:
            return turn
        why = f"{ordering_key} stands still since the run of {found['event_id']} died"
        waits = Deferral(
            now, WaitStrategy.HIDDEN, f"{message_groups.BEHIND}{found['event_id']}", why
        )
        return replace(turn, checked=AdmissionDecision(postponement=waits))

    def _astray(self, turn: Turn, row: Item, spec: HandlerSpec, now: datetime) -> Turn:
        """Parks a run that was sent before its handler was serial, or ends it if it cannot be."""
        try:
            ordering_key = turn.event.ordering_keys.get(spec.name) or self._found(row, spec)
        except Permanent as error:
            return replace(turn, checked=AdmissionDecision(instead=error))
        event = replace(
            turn.event, ordering_keys={**turn.event.ordering_keys, spec.name: ordering_key}
        )
        why = f"it is sent anew, in the order of {ordering_key}"
        waits = Deferral(now, WaitStrategy.PARKED, f"lane {spec.lane}", why)
        return replace(turn, event=event, checked=AdmissionDecision(postponement=waits))

    def _found(self, row: Item, spec: HandlerSpec) -> str:
        found = ordering_keys_of([spec], payloads.unpack(row, self._blobs))
        if not found:
            raise Permanent(missing(spec))
        return found[spec.name]
