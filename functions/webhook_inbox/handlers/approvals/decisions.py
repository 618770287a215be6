"""Records a person's decision about a held run.

    approve    the run continues; the approval covers the request as it was displayed
    happened   approves, and commits the effect in doubt, which is not repeated
    deny       the run is skipped; committed effects remain

Where the people of a group are asked (`approve=Approval(…)`), only a caller who is one of them can
approve, and the run continues once enough have.

The generation is raised before the message is sent, as in replay. Every write is conditional on the
displayed request, so the first of two concurrent decisions wins.
"""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Final

from webhook_inbox.domain.audit import Actor, AuditedAction, EventName
from webhook_inbox.domain.errors import ConditionFailed, Unavailable
from webhook_inbox.domain.manifest import Manifest
from webhook_inbox.domain.model import ApprovalOutcome, RequestState, Run, SkipReason, Status
from webhook_inbox.domain.ports import Change, Ports
from webhook_inbox.domain.timestamps import to_ms
from webhook_inbox.handlers.approvals.approvers import people_of, person_of
from webhook_inbox.handlers.approvals.hold import ApprovalRequest
from webhook_inbox.handlers.approvals.request_row import (
    DecisionOutcome,
    GivenDecision,
    RequestRow,
    RequestRows,
    Word,
)
from webhook_inbox.handlers.approvals.wake import is_held_for
from webhook_inbox.handlers.effects import manual_commit
from webhook_inbox.handlers.effects.journal import encode
from webhook_inbox.ledger import audit
from webhook_inbox.ledger.audit import AuditRecord
from webhook_inbox.ledger.deadlines import event_end, overdue_at
from webhook_inbox.ledger.schema import (
    WAKE,
    due_entry,
    key_of_run,
    run_from,
    run_key,
    transition,
)
from webhook_inbox.ledger.settle import as_seen, cut
from webhook_inbox.queue.lanes import Lanes
from webhook_inbox.queue.line import run_ended
from webhook_inbox.queue.message import RunMessage

# Limits the remembered approvals, and with them the size of a run's row.
REMEMBERED: Final = 20


@dataclass(frozen=True, slots=True)
class Decision:
    """The result of a decision.

    Attributes:
        outcome: the outcome.
        run: the run as it is now, None if it expired.
        committed: for `happened`, True if the commit was recorded, False if an earlier one exists;
            else None.
        request: the request as it is now, where people decide.
    """

    outcome: ApprovalOutcome
    run: Run | None
    committed: bool | None = None
    request: RequestRow | None = None


class Approvals:
    """Approves and denies held runs.

    The reconciler sends the message of a run whose handler `manifest` does not have.
    """

    def __init__(self, manifest: Manifest, ports: Ports) -> None:
        self._manifest = manifest
        self._table = ports.table
        self._rows = RequestRows(ports.table)
        self._lanes = Lanes(ports.queues)
        self._clock = ports.clock
        self._randomness = ports.randomness

    def approve(self, hold: ApprovalRequest, *, by: Actor, reason: str) -> Decision:
        """Approves the request as displayed; the run continues, if people decide once enough have.

        Raises:
            Unavailable: the ledger failed; the decision may be recorded, and can be repeated.
        """
        if self._expired(hold):
            return Decision(ApprovalOutcome.EXPIRED, hold.run)
        recorded = self._audit(AuditedAction.APPROVE, hold, by, reason)
        if hold.request is not None:
            return _conclude(recorded, self._count(hold, Word.APPROVE, by, reason))
        return _conclude(recorded, self._resume_run(hold, by, reason))

    def happened(self, hold: ApprovalRequest, result: Any, *, by: Actor, reason: str) -> Decision:
        """Commits the effect in question with `result`; the run continues.

        If a worker has committed the effect meanwhile, the worker's result is kept.

        Raises:
            NoDoubt: the effect is not in doubt.
            Unstorable: the result cannot be recorded.
            Unavailable: as for `approve`.
        """
        stored = encode(result)
        if self._expired(hold):
            return Decision(ApprovalOutcome.EXPIRED, hold.run)
        row = manual_commit.find(self._table, hold.run, hold.effect)
        recorded = self._audit(AuditedAction.HAPPENED, hold, by, reason)
        word = {"by": cut(str(by)), "reason": cut(reason)}
        mark, now = self._randomness.token(), self._clock.now()
        committed = manual_commit.commit(self._table, row, stored, word=word, mark=mark, now=now)
        decision = replace(self._resume_run(hold, by, reason), committed=committed)
        return _conclude(recorded, decision)

    def deny(self, hold: ApprovalRequest, *, by: Actor, reason: str) -> Decision:
        """Skips the run.

        Raises:
            Unavailable: as for `approve`.
        """
        recorded = self._audit(AuditedAction.DENY, hold, by, reason)
        if hold.request is not None:
            return _conclude(recorded, self._count(hold, Word.DENY, by, reason))
        return _conclude(recorded, self._skip_run(hold, by, reason))

    # -- requests that people decide

    def count(
        self, request: RequestRow, person: str, word: Word, *, by: Actor, reason: str
    ) -> tuple[DecisionOutcome, RequestRow]:
        """Records one person's decision; the one that was missing continues or ends the run.

        Raises:
            Unavailable: the ledger failed; the decision may be recorded, and can be repeated.
        """
        now = self._clock.now()
        given = GivenDecision(word, now, cut(reason), str(by.proof))
        mark = self._randomness.token()
        outcome, request = self._rows.decide(request, person, given, mark=mark)
        self._apply(request, by, reason)
        return outcome, request

    def _count(self, hold: ApprovalRequest, word: Word, by: Actor, reason: str) -> Decision:
        now, key = self._clock.now(), hold.request
        request = None if key is None else self._rows.find(key, now)
        if request is None:
            return Decision(ApprovalOutcome.MOVED_ON, self._current_run(hold))
        people = people_of(request, self._manifest.approvers)
        person = person_of(by, people)
        if word is Word.APPROVE and person not in people:
            # A person with a link and this caller may be one human. A denial needs no second one.
            return Decision(ApprovalOutcome.NOT_ASKED, self._current_run(hold), request=request)
        outcome, request = self.count(request, person, word, by=by, reason=reason)
        run = self._current_run(hold)
        return Decision(_operator_outcome(outcome, request), run, request=request)

    def _apply(self, request: RequestRow, by: Actor, reason: str) -> None:
        """Continues or ends the run of a decided request, unless it looks by itself."""
        address = request.address
        if request.state not in {RequestState.APPROVED, RequestState.DENIED}:
            return
        row = self._table.get(run_key(address.source, address.event_id, address.handler))
        run = None if row is None else run_from(row)
        if run is None or not is_held_for(run, request):
            return
        hold = ApprovalRequest(run)
        if request.state is RequestState.APPROVED:
            self._resume_run(hold, by, reason)
        else:
            self._skip_run(hold, by, reason)

    # -- the run

    def _skip_run(self, hold: ApprovalRequest, by: Actor, reason: str) -> Decision:
        now = self._clock.now()
        change = Change(
            set={
                "status": str(Status.SKIPPED),
                "skip_reason": str(SkipReason.DENIED),
                "last_error": cut(f"denied by {by}: {reason}"),
                "last_at": to_ms(now),
                "done_at": to_ms(now),
            },
            remove=(*_OF_THE_HOLD, "due_bucket", "due_at"),
        )
        run = self._change(hold, change, ours=change.set)
        if run is not None:
            # Otherwise the reconciler's check of the next run continues the line.
            with suppress(Unavailable):
                run_ended(self._table, run, now=now)
        outcome = ApprovalOutcome.DENIED if run else ApprovalOutcome.MOVED_ON
        return Decision(outcome, run or self._current_run(hold))

    def _resume_run(self, hold: ApprovalRequest, by: Actor, reason: str) -> Decision:
        run, now = hold.run, self._clock.now()
        # The id distinguishes it from another decision in the same millisecond.
        entry = {
            "id": self._randomness.token(),
            "by": cut(str(by)),
            "reason": cut(reason),
            "at": to_ms(now),
            "fingerprint": hold.fingerprint,
            **_earlier_approvals(run, hold),
        }
        change = Change(
            set={
                "status": str(Status.PENDING),
                "generation": run.generation + 1,
                "approvals": {**run.approvals, hold.subject: entry},
                "resumed_at": to_ms(now),
                "last_at": to_ms(now),
                **due_entry(key_of_run(run), overdue_at(now)),
            },
            remove=_OF_THE_HOLD,
        )
        # A worker may have leased the run by the time that an earlier try is recognised.
        changed = self._change(hold, change, ours={"approvals": change.set["approvals"]})
        if changed is None:
            return Decision(ApprovalOutcome.MOVED_ON, self._current_run(hold))
        sent = self._send(changed)
        return Decision(ApprovalOutcome.APPROVED if sent else ApprovalOutcome.UNSENT, changed)

    def _change(
        self, hold: ApprovalRequest, change: Change, *, ours: Mapping[str, Any]
    ) -> Run | None:
        """Changes the run; returns None if it is no longer held for this request.

        `ours` identifies an earlier try of this call whose answer was lost.
        """
        try:
            # A run that is held again has another lease.
            unchanged = as_seen(hold.run)
            return run_from(
                transition(self._table, key_of_run(hold.run), change, when=unchanged, own=ours)
            )
        except ConditionFailed:
            return None

    def _send(self, run: Run) -> bool:
        spec = self._manifest.handler(run.handler)
        if spec is not None:
            with suppress(Unavailable):
                self._lanes.send([(spec.lane, RunMessage.of(run))])
                return True
        # No message was sent: the run is due, and the reconciler's next pass sends it.
        now, key = self._clock.now(), key_of_run(run)
        waits = {"parked": True, "next_attempt_at": to_ms(now), **due_entry(key, now, kind=WAKE)}
        with suppress(Unavailable, ConditionFailed):
            self._table.update(key, Change(set=waits), when=as_seen(run))
        return False

    def _current_run(self, hold: ApprovalRequest) -> Run | None:
        row = self._table.get(key_of_run(hold.run))
        return None if row is None else run_from(row)

    def _expired(self, hold: ApprovalRequest) -> bool:
        end = hold.run.expires_at
        return end is not None and event_end(end) <= self._clock.now()

    def _audit(
        self, action: AuditedAction, hold: ApprovalRequest, by: Actor, reason: str
    ) -> AuditRecord:
        run = hold.run
        about = {"subject": hold.subject, "fingerprint": hold.fingerprint}
        return audit.record(
            self._table,
            self._randomness,
            action=action,
            by=by,
            reason=reason,
            request={"source": run.source, "handler": run.handler, **about},
            event=EventName(run.source, run.event_id),
            now=self._clock.now(),
        )


# Attributes that a decision removes; without the lease id, a lost worker cannot settle the run.
_OF_THE_HOLD: Final = (
    "held",
    "lease_id",
    "claimed_until",
    "next_attempt_at",
    "parked",
    "resends",
    "waits_for",
)


def _operator_outcome(outcome: DecisionOutcome, request: RequestRow) -> ApprovalOutcome:
    """Returns the outcome for an operator of a decision about a request of people."""
    if outcome in {DecisionOutcome.RECORDED, DecisionOutcome.REPEATED}:
        ended = {
            RequestState.APPROVED: ApprovalOutcome.APPROVED,
            RequestState.DENIED: ApprovalOutcome.DENIED,
        }
        if request.state in ended:
            return ended[request.state]
    outcomes = {
        DecisionOutcome.RECORDED: ApprovalOutcome.COUNTED,
        DecisionOutcome.REPEATED: ApprovalOutcome.REPEATED,
        DecisionOutcome.CONFLICT: ApprovalOutcome.REPEATED,
    }
    return outcomes.get(outcome, ApprovalOutcome.CLOSED)


def _conclude(recorded: AuditRecord, decision: Decision) -> Decision:
    recorded.conclude({decision.outcome: 1})
    return decision


def _earlier_approvals(run: Run, hold: ApprovalRequest) -> dict[str, Any]:
    """Returns the earlier approvals of the same subject; a handler may ask more than once."""
    entry = run.approvals.get(hold.subject)
    if entry is None:
        return {}
    known = (*entry.get("before", ()), entry.get("fingerprint", ""))
    return {"before": list(dict.fromkeys(known))[-REMEMBERED:]}
