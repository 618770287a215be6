"""The runs that wait for a person's decision."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from functools import partial
from heapq import nsmallest
from itertools import islice
from typing import Any, Final

from webhook_inbox.client.errors import NotFound, Refused, WrongArgument
from webhook_inbox.client.listing import Listing
from webhook_inbox.client.names import require_known
from webhook_inbox.client.operation import Operation
from webhook_inbox.client.scope import Scope
from webhook_inbox.domain.audit import Actor, AuditedAction
from webhook_inbox.domain.manifest import matches
from webhook_inbox.domain.model import ApprovalOutcome, RequestState, Run, Status
from webhook_inbox.domain.ports import Key
from webhook_inbox.domain.timestamps import EPOCH
from webhook_inbox.handlers.approvals.approvers import people_of
from webhook_inbox.handlers.approvals.decisions import Approvals, Decision
from webhook_inbox.handlers.approvals.hold import ApprovalRequest, holds
from webhook_inbox.handlers.approvals.request_row import RequestRow, Word
from webhook_inbox.handlers.effects.journal import Unstorable
from webhook_inbox.handlers.effects.manual_commit import NoDoubt

# Outcomes by which nothing was decided.
UNDECIDED: Final = (ApprovalOutcome.MOVED_ON, ApprovalOutcome.EXPIRED, ApprovalOutcome.NOT_ASKED)
_NOTHING: Final = "no decision was recorded"


@dataclass(frozen=True, slots=True)
class PeopleDecisions:
    """The decisions of the people of a group about a request.

    Attributes:
        group: the group that is asked.
        count: the approvals that are needed.
        approved_by: the people who have approved.
        expires_at: when the request expires.
    """

    group: str
    count: int
    approved_by: tuple[str, ...]
    expires_at: datetime

    @classmethod
    def of(cls, request: RequestRow) -> "PeopleDecisions":
        """Returns the decisions of a request."""
        decided = request.decisions.items()
        approved = tuple(person for person, given in decided if given.word is Word.APPROVE)
        return cls(request.group, request.count, approved, request.until)


@dataclass(frozen=True, slots=True)
class HeldRun:
    """A run that waits for a decision.

    Attributes:
        source: the source of its event.
        event_id: its event.
        handler: its handler.
        type: the type of its event.
        hold: the id of the approval request, different for each hold of a run.
        subject: what is decided, like "policy" or "effect:refund".
        reason: why it is held.
        shows: the details of the request.
        fingerprint: what distinguishes the request from an earlier one about the same subject.
        held_at: since when it is held.
        identical_to: the first event with this event's body, where it is held for that.
        unannounced: why a person who is asked was not told, by name.
        people: what the people of a group have decided; None where one operator decides.
    """

    source: str
    event_id: str
    handler: str
    type: str
    hold: str
    subject: str
    reason: str
    shows: str | None
    fingerprint: str | None
    held_at: datetime | None
    identical_to: str | None
    unannounced: Mapping[str, str]
    people: PeopleDecisions | None = None

    @classmethod
    def of(cls, run: Run, request: RequestRow | None = None) -> "HeldRun":
        """Returns a held run, with the request that people decide."""
        hold = ApprovalRequest(run)
        return cls(
            source=run.source,
            event_id=run.event_id,
            handler=run.handler,
            type=run.type,
            hold=hold.id,
            subject=hold.subject,
            reason=hold.reason,
            shows=hold.shows or None,
            fingerprint=hold.fingerprint or None,
            held_at=hold.since,
            identical_to=hold.identical_to or None,
            unannounced=dict(hold.unannounced),
            people=None if request is None else PeopleDecisions.of(request),
        )

    @property
    def effect(self) -> str:
        """The name of the effect in question, or ""."""
        return self.subject.partition(":")[2]


@dataclass(frozen=True, slots=True)
class HoldFilter:
    """Selects held runs; "" and None select all.

    `type` is a pattern, `reason` a part of the text; the times are those at which runs were held.
    """

    source: str = ""
    handler: str = ""
    type: str = ""
    subject: str = ""
    reason: str = ""
    since: datetime | None = None
    until: datetime | None = None

    def fits(self, hold: ApprovalRequest) -> bool:
        """Returns whether the filter selects a request."""
        run, at = hold.run, hold.since or EPOCH
        return (
            self.source in {"", run.source}
            and self.handler in {"", run.handler}
            and (not self.type or matches((self.type,), run.type))
            and self.subject in {"", hold.subject}
            and self.reason in hold.reason
            and (self.since is None or at >= self.since)
            and (self.until is None or at < self.until)
        )


ALL: Final = HoldFilter()


@dataclass(frozen=True, slots=True)
class HoldDecision:
    """A decision about one run.

    Attributes:
        hold: the run as it was held; its `people` are those of now.
        outcome: the outcome.
        status: the run's status now.
        committed: for an effect that happened, whether this result was recorded; False if the
            effect was committed before, None for other decisions.
    """

    hold: HeldRun
    outcome: ApprovalOutcome
    status: Status | None
    committed: bool | None


@dataclass(frozen=True, slots=True)
class DecidedHold:
    """The outcome for one of many runs."""

    hold: HeldRun
    outcome: ApprovalOutcome


class Holds:
    """The runs that wait for a person's decision."""

    def __init__(self, scope: Scope) -> None:
        self._scope = scope

    def list(
        self, filters: HoldFilter = ALL, *, limit: int | None = None, oldest_first: bool = True
    ) -> Listing[HeldRun]:
        """Returns the runs that the filter selects.

        Args:
            filters: the filter.
            limit: the maximum number.
            oldest_first: whether the run that waits longest precedes the others; otherwise they
                are those, and in the order, that `approve_all` decides.

        Raises:
            WrongArgument: while iterated, if nothing is selected by an unknown name.
        """
        return Listing(
            self._scope, self._list(filters, limit, oldest_first=oldest_first), limit=limit
        )

    def _list(
        self, filters: HoldFilter, limit: int | None, *, oldest_first: bool
    ) -> Iterator[HeldRun]:
        selected = self._select(filters)
        if not oldest_first:
            requests = list(islice(selected, limit))
        elif limit is None:
            requests = sorted(selected, key=_since)
        else:
            # Only as many as are wanted are in memory.
            requests = nsmallest(limit, selected, key=_since)
        keys = [each.request for each in requests if each.request is not None]
        # Most runs wait for one operator.
        rows = self._scope.table.get_many(keys) if keys else ()
        people = {Key(row["pk"], row["sk"]): RequestRow(row) for row in rows}
        for each in requests:
            yield HeldRun.of(each.run, people.get(each.request) if each.request else None)

    def _select(self, filters: HoldFilter) -> Iterator[ApprovalRequest]:
        """Yields the requests that the filter selects; raises WrongArgument for unknown names."""
        some = False
        for hold in filter(filters.fits, holds(self._scope.ledger())):
            some = True
            yield hold
        if not some:
            source, handler = filters.source or None, filters.handler or None
            require_known(self._scope.target, source=source, handler=handler)

    def get(
        self,
        event_id: str,
        *,
        source: str | None = None,
        handler: str | None = None,
        hold: str | None = None,
    ) -> HeldRun:
        """Returns the one held run of an event.

        Raises:
            WrongArgument: no such source or handler is deployed.
            NotFound: the event has no such run.
            Refused: no run of it is held, not for this request, or several are.
        """
        return HeldRun.of(self._find(event_id, source, handler, hold).run)

    def approve(
        self,
        event_id: str,
        *,
        source: str | None = None,
        handler: str | None = None,
        hold: str | None = None,
        reason: str,
        by: Actor,
    ) -> HoldDecision:
        """Approves a run, which continues; an effect in doubt is repeated with the same key.

        Where the people of a group approve, the actor must have the name of one of them, and the
        run stays held until enough have.

        Raises:
            WrongArgument, NotFound: as `get`.
            Refused: as `get`; or the actor is not asked, or the request has ended meanwhile.
        """
        request = self._find_to_change(event_id, source, handler, hold)
        return self._decided(request, self._approvals.approve(request, by=by, reason=reason), by)

    def confirm_effect(
        self,
        event_id: str,
        result: Any,
        *,
        source: str | None = None,
        handler: str | None = None,
        hold: str | None = None,
        reason: str,
        by: Actor,
    ) -> HoldDecision:
        """Records an effect in doubt as committed with this result; the run continues.

        Raises:
            WrongArgument, NotFound: as `get`.
            Refused: as `approve`; or no effect is in doubt, or the result cannot be stored.
        """
        request = self._find_to_change(event_id, source, handler, hold)
        try:
            decision = self._approvals.happened(request, result, by=by, reason=reason)
        except (NoDoubt, Unstorable) as error:
            raise Refused(str(error)) from error
        return self._decided(request, decision, by)

    def deny(
        self,
        event_id: str,
        *,
        source: str | None = None,
        handler: str | None = None,
        hold: str | None = None,
        reason: str,
        by: Actor,
    ) -> HoldDecision:
        """Denies a run: it ends as skipped; effects that happened remain.

        Raises:
            WrongArgument, NotFound, Refused: as `approve`.
        """
        request = self._find_to_change(event_id, source, handler, hold)
        return self._decided(request, self._approvals.deny(request, by=by, reason=reason), by)

    def approve_all(
        self, filters: HoldFilter, *, limit: int, reason: str, by: Actor
    ) -> Operation[DecidedHold]:
        """Approves the runs that the filter selects, as they are found.

        Raises:
            WrongArgument: the filter has no subject; or, while iterated, an unknown name.
            Unavailable: while iterated, AWS failed; it says what was done.
        """
        decide = partial(self._approvals.approve, by=by, reason=reason)
        return self._decide_all(AuditedAction.APPROVE, filters, limit, decide, by=by, reason=reason)

    def deny_all(
        self, filters: HoldFilter, *, limit: int, reason: str, by: Actor
    ) -> Operation[DecidedHold]:
        """Denies the runs that the filter selects, as `approve_all` approves them."""
        decide = partial(self._approvals.deny, by=by, reason=reason)
        return self._decide_all(AuditedAction.DENY, filters, limit, decide, by=by, reason=reason)

    @property
    def _approvals(self) -> Approvals:
        scope = self._scope
        return Approvals(scope.manifest, scope.ports)

    def _decide_all(
        self,
        action: AuditedAction,
        filters: HoldFilter,
        limit: int,
        decide: Callable[[ApprovalRequest], Decision],
        *,
        by: Actor,
        reason: str,
    ) -> Operation[DecidedHold]:
        scope = self._scope
        scope.require_write()
        if not filters.subject:
            raise WrongArgument("name a subject: one decision is for one subject")
        about = {name: str(value) for name, value in asdict(filters).items() if value}

        def steps(operation: Operation[DecidedHold]) -> Iterator[DecidedHold]:
            with scope.audited(action, by, reason=reason, **about, limit=str(limit)) as counts:
                operation.counts = counts
                for each in islice(self._select(filters), limit):
                    if operation.ended_by:
                        break
                    outcome = decide(each).outcome
                    counts[outcome] += 1
                    yield DecidedHold(HeldRun.of(each.run), outcome)

        def done(counts: Counter[str]) -> str:
            return f"{counts.total() - sum(counts[each] for each in UNDECIDED)} were decided"

        return Operation(steps, done=done)

    def _find_to_change(
        self, event_id: str, source: str | None, handler: str | None, hold: str | None
    ) -> ApprovalRequest:
        self._scope.require_write()
        return self._find(event_id, source, handler, hold)

    def _find(
        self, event_id: str, source: str | None, handler: str | None, hold: str | None
    ) -> ApprovalRequest:
        """Returns the approval request; raises an error unless exactly one matches."""
        runs = self._scope.runs(event_id, source, handler)
        listed = self._scope.program.command("hold list")
        if not runs:
            subject = f"run of {handler}" if handler else "run"
            raise NotFound(f"no {subject} for an event {event_id}: see `{listed}`")
        requests = [ApprovalRequest(run) for run in runs if run.status is Status.HELD]
        matching = [each for each in requests if hold in {None, each.id}]
        if len(matching) == 1:
            return matching[0]
        if not requests:
            raise Refused(f"{_states(runs)}: no approval request; see `{listed}`")
        states = _states(each.run for each in requests)
        if not matching:
            raise Refused(
                f"{hold} is no current approval request of {event_id}: {states}."
                " Inspect the event and decide again"
            )
        raise Refused(f"{states}: choose one with --handler, --source or --hold")

    def _decided(self, hold: ApprovalRequest, decision: Decision, by: Actor) -> HoldDecision:
        """Returns a decision; raises Refused where nothing was decided."""
        if refusal := self._refusal(hold, decision, by):
            raise Refused(refusal)
        status = None if decision.run is None else decision.run.status
        shown = HeldRun.of(hold.run, decision.request)
        return HoldDecision(shown, decision.outcome, status, decision.committed)

    def _refusal(self, hold: ApprovalRequest, decision: Decision, by: Actor) -> str:
        """Returns why nothing was decided, "" if it was."""
        request = decision.request
        if decision.outcome is ApprovalOutcome.MOVED_ON:
            state = _state(decision.run) if decision.run else "the run no longer exists"
            but = "only the effect was recorded as committed" if decision.committed else _NOTHING
            return f"the run changed meanwhile, and {but}: {state}"
        if decision.outcome is ApprovalOutcome.EXPIRED:
            return (
                f"the event {hold.run.event_id} has expired with its runs: {_NOTHING};"
                " ask the provider to send it again"
            )
        if decision.outcome is ApprovalOutcome.NOT_ASKED and request is not None:
            people = sorted(people_of(request, self._scope.manifest.approvers))
            asked = ", ".join(people) or f"the people of {request.group}, which cannot be read"
            return (
                f"{by.name} is not one of the people who are asked ({asked}), and {_NOTHING}: they"
                " decide with the link in their message, or with an AWS user or session of their"
                " name"
            )
        if decision.outcome is ApprovalOutcome.CLOSED and request is not None:
            # Its run marks a request as expired when it looks.
            over = RequestState.EXPIRED if request.state is RequestState.OPEN else request.state
            return f"the request is {over}, and {_NOTHING}: its run ends or continues by itself"
        return ""


def _since(hold: ApprovalRequest) -> datetime:
    return hold.since or EPOCH


def _states(runs: Iterable[Run]) -> str:
    return "; ".join(map(_state, runs))


def _state(run: Run) -> str:
    if run.status is not Status.HELD:
        return f"{run.handler} of {run.source} is {run.status}"
    hold = ApprovalRequest(run)
    shows = f" ({hold.shows})" if hold.shows else ""
    return f"{run.handler} of {run.source} is held for {hold.subject} as {hold.id}{shows}"
