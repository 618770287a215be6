"""Requests for approval that named people decide outside the terminal, each by a link.

`view` shows a request and changes nothing; `decide` records one person's decision, once.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from webhook_inbox.domain.audit import Actor, AuditedAction, EventName, Proof
from webhook_inbox.domain.manifest import Manifest
from webhook_inbox.domain.model import SETTLED, RequestState, Status
from webhook_inbox.domain.ports import Ports
from webhook_inbox.handlers.approvals.approvers import people_of
from webhook_inbox.handlers.approvals.decisions import Approvals
from webhook_inbox.handlers.approvals.request_row import (
    DecisionOutcome,
    GivenDecision,
    RequestAddress,
    RequestRow,
    RequestRows,
    Word,
)
from webhook_inbox.ledger import audit
from webhook_inbox.ledger.schema import run_key

__all__ = [
    "ApprovalRequests",
    "DecisionOutcome",
    "GivenDecision",
    "RequestAddress",
    "RequestState",
    "RequestView",
    "Word",
]


@dataclass(frozen=True, slots=True)
class RequestView:
    """A request as its approvers see it.

    Attributes:
        address: identifies it.
        question: one line.
        effect: the effect's name.
        arguments: the normalised JSON of the effect's arguments; secrets and personal values are
            replaced.
        people: the people who are asked or who decided, each with the decision, if any.
        count: the approvals that are needed.
        opened_at: when it was opened.
        expires_at: when it ends undecided.
        state: its state at the time of the read.
    """

    address: RequestAddress
    question: str
    effect: str
    arguments: str
    people: Mapping[str, GivenDecision | None]
    count: int
    opened_at: datetime
    expires_at: datetime
    state: RequestState


class ApprovalRequests:
    """Shows and decides requests."""

    def __init__(self, manifest: Manifest, ports: Ports) -> None:
        self._table = ports.table
        self._rows = RequestRows(ports.table)
        self._groups = manifest.approvers
        self._clock = ports.clock
        self._randomness = ports.randomness
        self._approvals = Approvals(manifest, ports)

    def view(self, address: RequestAddress) -> RequestView | None:
        """Returns a request, None if it is unknown; never writes.

        Raises:
            Unavailable: the ledger failed.
        """
        request = self._rows.at(address, self._clock.now())
        if request is None:
            return None
        asked = dict.fromkeys(people_of(request, self._groups))
        return RequestView(
            address=address,
            question=request.question,
            effect=request.row["effect"],
            arguments=request.row["arguments"],
            people={**asked, **request.decisions},
            count=request.count,
            opened_at=request.opened_at,
            expires_at=request.until,
            state=self._state(request),
        )

    def decide(
        self, address: RequestAddress, person: str, word: Word, reason: str
    ) -> DecisionOutcome:
        """Records a person's decision; the one that was missing continues or ends the run.

        Only the people who are asked now decide: a person who was removed from inbox.toml has no
        vote any more.

        Raises:
            Unavailable: the ledger failed; the decision may be recorded, and can be repeated.
        """
        request = self._rows.at(address, self._clock.now())
        if request is None or person not in people_of(request, self._groups):
            return DecisionOutcome.UNKNOWN
        by, state = Actor(person, Proof.LINK), self._state(request)
        if request.state is RequestState.OPEN and state is RequestState.VOID:
            return DecisionOutcome.VOID
        if person in request.decisions or state is not RequestState.OPEN:
            # Nothing will be recorded, but a crash may have left the run of an ended request held.
            return self._approvals.count(request, person, word, by=by, reason=reason)[0]
        recorded = self._audit(request, by, word, reason)
        outcome, _ = self._approvals.count(request, person, word, by=by, reason=reason)
        recorded.conclude({outcome: 1})
        return outcome

    def _state(self, request: RequestRow) -> RequestState:
        """Returns the state at this time; a request whose run has ended is void."""
        if request.state is not RequestState.OPEN:
            return request.state
        if self._clock.now() >= request.until:
            return RequestState.EXPIRED
        return RequestState.VOID if self._is_over(request.address) else RequestState.OPEN

    def _is_over(self, address: RequestAddress) -> bool:
        row = self._table.get(run_key(address.source, address.event_id, address.handler))
        return row is None or row["status"] in {*SETTLED, Status.DEAD_LETTER}

    def _audit(self, request: RequestRow, by: Actor, word: Word, reason: str) -> audit.AuditRecord:
        address = request.address
        action = AuditedAction.APPROVE if word is Word.APPROVE else AuditedAction.DENY
        return audit.record(
            self._table,
            self._randomness,
            action=action,
            by=by,
            reason=reason,
            request={
                "source": address.source,
                "handler": address.handler,
                "subject": address.subject,
                "fingerprint": address.fingerprint,
                "round": str(address.round),
            },
            event=EventName(address.source, address.event_id),
            now=self._clock.now(),
        )
