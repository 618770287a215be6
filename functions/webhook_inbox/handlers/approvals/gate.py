"""Asks the people of a group before an effect starts: the effect's side of a request."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from webhook_inbox.domain.audit import INBOX, AuditedAction, EventName
from webhook_inbox.domain.errors import ConditionFailed, InboxError, Permanent
from webhook_inbox.domain.internal_errors import ApprovalRequired, SkippedBecause
from webhook_inbox.domain.manifest import ApproversSpec
from webhook_inbox.domain.model import RequestState, Run, SkipReason
from webhook_inbox.domain.ports import Item, Ports
from webhook_inbox.domain.timestamps import from_ms, to_ms, to_seconds
from webhook_inbox.handlers.approvals.approvers import escalation_at
from webhook_inbox.handlers.approvals.request_row import (
    RequestAddress,
    RequestRow,
    RequestRows,
    Word,
)
from webhook_inbox.handlers.effects.plan import Approval, Plan
from webhook_inbox.ledger import audit
from webhook_inbox.ledger.schema import EFFECT_LIFE


class ApprovalPending(ApprovalRequired):
    """A hold that the people of a group decide.

    Attributes:
        request: the request, open; the announcer replaces it by what it has written.
        wake_at: when the run has to look again, if no one decides before.
        unannounced: why a person could not be told, by name.
    """

    request: RequestRow

    def __init__(self, request: RequestRow, wake_at: datetime) -> None:
        row = request.row
        super().__init__(
            f"effect {row['effect']!r} waits for approval by {request.count} of {request.group}",
            subject=row["subject"],
            shows=row["arguments"],
            fingerprint=row["fingerprint"],
        )
        self.request = request
        self.wake_at = wake_at
        self.unannounced: Mapping[str, str] = {}

    @property
    def wake(self) -> Mapping[str, Any]:
        """The attributes of `Run.held` by which the reconciler wakes the run."""
        more = {"unannounced": dict(self.unannounced)} if self.unannounced else {}
        return {"request": self.request.key.sk, "wake_at": to_ms(self.wake_at), **more}


@dataclass(frozen=True, slots=True)
class ApprovalGate:
    """Asks for the approvals of one attempt.

    Attributes:
        ports: the ledger, the time, and the randomness that names the rows of the audit.
        run: the run as leased.
        groups: the groups of inbox.toml.
        received_at: when the event was received.
        hide: removes secrets and personal values from the arguments that people see.
    """

    ports: Ports
    run: Run
    groups: Mapping[str, ApproversSpec]
    received_at: datetime
    hide: Callable[[str], str] = str

    @property
    def rows(self) -> RequestRows:
        """The rows of requests."""
        return RequestRows(self.ports.table)

    def refusal(self, plan: Plan, approval: Approval) -> InboxError | None:
        """Returns why the effect may not start; None if enough people approved it.

        Returns:
            `ApprovalPending` while the request is open, `SkippedBecause` after a denial,
            `Permanent` after the request expired or for an unknown group.

        Raises:
            Unavailable: the ledger failed.
        """
        group, now = self.groups.get(approval.by), self.ports.clock.now()
        if group is None:
            return Permanent(
                f"effect {plan.name!r}: approve: inbox.toml has no [approvers.{approval.by}]"
            )
        request = self._request(plan, approval, now)
        if request.state is RequestState.OPEN and now >= request.until:
            request = self._end(request, RequestState.EXPIRED, now)
        if request.state is RequestState.APPROVED:
            return None
        if request.state is RequestState.DENIED:
            return SkippedBecause(SkipReason.DENIED, f"denied by {_denier(request)}")
        if request.state is not RequestState.OPEN:
            return Permanent(f"approval expired: undecided by {request.until:%Y-%m-%dT%H:%M:%SZ}")
        request = self._escalated(request, group, now)
        return ApprovalPending(request, _next_look(request, group))

    def _request(self, plan: Plan, approval: Approval, now: datetime) -> RequestRow:
        """Returns the request about these arguments; the others of the subject become void."""
        terms: Item = {
            "fingerprint": plan.arguments,
            "group": approval.by,
            "count": approval.count,
        }
        found = self.rows.of_subject(self.run, plan.subject, now)
        for other in found:
            if other.state is RequestState.OPEN and not other.asks(terms):
                self._end(other, RequestState.VOID, now)
        about = [each for each in found if each.row["fingerprint"] == plan.arguments]
        newest = max(about, key=lambda each: each.address.round, default=None)
        if newest is not None and newest.asks(terms) and not self._is_from_before_replay(newest):
            return newest
        number = 1 if newest is None else newest.address.round + 1
        return self._open(plan, approval, terms, number, now)

    def _is_from_before_replay(self, request: RequestRow) -> bool:
        """Returns whether a request ended without approval before the run's death or replay."""
        if request.state in {RequestState.OPEN, RequestState.APPROVED}:
            return False
        if request.state is RequestState.VOID:
            return True
        replays = self.run.replays
        replayed = from_ms(replays[-1]["at"]) if replays else None
        begun = max(filter(None, (self.run.dead_at, replayed)), default=None)
        ended = request.ended_at
        return begun is not None and ended is not None and ended <= begun

    def _open(
        self, plan: Plan, approval: Approval, terms: Item, number: int, now: datetime
    ) -> RequestRow:
        run = self.run
        place = (run.source, run.event_id, run.handler, plan.subject, plan.arguments)
        address = RequestAddress(*place, number)
        values = {
            **terms,
            "source": run.source,
            "event_id": run.event_id,
            "handler": run.handler,
            "type": run.type,
            "subject": plan.subject,
            "round": number,
            "effect": plan.name,
            "arguments": self.hide(plan.shows),
            "opened_at": to_ms(now),
            "until": to_ms(now + approval.lifetime),
            "expires_at": to_seconds(self.received_at + EFFECT_LIFE),
        }
        opened = self.rows.open(address, values, now)
        self.note(AuditedAction.ASK, opened, now)
        return opened

    def _escalated(self, request: RequestRow, group: ApproversSpec, now: datetime) -> RequestRow:
        """Returns the request, escalated once that is due; another writer may have done so."""
        due = escalation_at(request, group)
        if due is None or now < due:
            return request
        try:
            escalated = self.rows.change(
                request, {"escalated_at": to_ms(now)}, mark=self.run.lease_id
            )
        except ConditionFailed as error:
            # Another writer came first: the run looks again soon.
            return request if error.old is None else RequestRow(error.old)
        self.note(AuditedAction.ESCALATE, escalated, now, to=group.escalate_to)
        return escalated

    def _end(self, request: RequestRow, state: RequestState, now: datetime) -> RequestRow:
        ended = self.rows.end(request, state, now, mark=self.run.lease_id)
        if ended.state is state:
            self.note(AuditedAction.EXPIRE, ended, now, state=str(state))
        return ended

    def note(self, action: AuditedAction, request: RequestRow, now: datetime, **more: str) -> None:
        """Adds what the inbox itself has done to the audit and the event's history."""
        address = request.address
        audit.note(
            self.ports.table,
            self.ports.randomness,
            action=action,
            by=INBOX,
            request={
                "source": address.source,
                "handler": address.handler,
                "subject": address.subject,
                "round": str(address.round),
                **more,
            },
            event=EventName(address.source, address.event_id),
            now=now,
        )


def _next_look(request: RequestRow, group: ApproversSpec) -> datetime:
    return min(filter(None, (request.until, escalation_at(request, group))))


def _denier(request: RequestRow) -> str:
    for person, given in request.decisions.items():
        if given.word is Word.DENY:
            return f"{person}: {given.reason}" if given.reason else person
    return "a person"
