"""`hold`: lists and decides approval requests."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass
from functools import partial
from heapq import nsmallest
from itertools import islice
from typing import Annotated, Any, Final

import typer

from webhook_inbox.client.names import known_manifest, require_known
from webhook_inbox.domain.audit import AuditedAction
from webhook_inbox.domain.errors import Unavailable
from webhook_inbox.domain.model import RequestState, Run, Status
from webhook_inbox.domain.ports import Key
from webhook_inbox.domain.timestamps import EPOCH
from webhook_inbox.handlers.approvals.approvers import people_of
from webhook_inbox.handlers.approvals.decisions import ApprovalOutcome, Approvals, Decision
from webhook_inbox.handlers.approvals.hold import ApprovalRequest, HoldFilter, holds
from webhook_inbox.handlers.approvals.request_row import RequestRow
from webhook_inbox.handlers.effects.journal import Unstorable
from webhook_inbox.handlers.effects.manual_commit import NoDoubt
from webhookctl.command_tree import CommandTree
from webhookctl.display.output import counted
from webhookctl.display.runs import (
    hold_object,
    request_line,
    request_object,
    unannounced_lines,
)
from webhookctl.display.table import Column, Fit
from webhookctl.display.times import moment
from webhookctl.errors import CommandError
from webhookctl.invocation import (
    By,
    EventType,
    Handler,
    Invocation,
    Limit,
    Reason,
    Since,
    Source,
    Until,
    parsed,
    takes_options,
)

COLUMNS: Final = (
    Column("SINCE"),
    Column("SOURCE", Fit.NAME),
    Column("EVENT_ID", Fit.ID),
    Column("HANDLER", Fit.NAME),
    Column("HOLD"),
    Column("REASON", Fit.NOTE),
)
MEANINGS: Final = {
    ApprovalOutcome.APPROVED: "approved; its run is sent",
    ApprovalOutcome.UNSENT: "approved; the reconciler sends its run within two minutes",
    ApprovalOutcome.DENIED: "denied; its run is skipped",
}
# The texts for the counts of a decision about several runs.
COUNTED: Final = {
    ApprovalOutcome.APPROVED: "approved; their runs are sent",
    ApprovalOutcome.UNSENT: "approved; the reconciler sends their runs within two minutes",
    ApprovalOutcome.DENIED: "denied; their runs are skipped",
    ApprovalOutcome.COUNTED: "approved by one of the people; their runs stay held",
    ApprovalOutcome.REPEATED: "decided by this caller before; their runs stay held",
    ApprovalOutcome.CLOSED: "decided, expired or void; no decision was recorded",
    ApprovalOutcome.NOT_ASKED: "decided by named people, and this caller is not one of them; no"
    " decision was recorded",
    ApprovalOutcome.MOVED_ON: "changed meanwhile; no decision was recorded",
    ApprovalOutcome.EXPIRED: "expired; no decision was recorded",
}
UNDECIDED: Final = (ApprovalOutcome.MOVED_ON, ApprovalOutcome.EXPIRED, ApprovalOutcome.NOT_ASKED)

_NOTHING: Final = "no decision was recorded"

app: Final = CommandTree(help="List and decide approval requests.")

HoldId = Annotated[
    str | None,
    typer.Option("--hold", metavar="ID", help="Decide only this approval request, as listed."),
]
Named = Annotated[
    str | None,
    typer.Argument(
        metavar="EVENT_ID", help="The event's id at the provider; without it, use the filters."
    ),
]
Yes = Annotated[
    bool, typer.Option("--yes", help="Decide what the filters select; without it, only list it.")
]


@dataclass(frozen=True)
class Filters:
    """The options that select approval requests."""

    source: Source = None
    handler: Handler = None
    type_: EventType = None
    subject: Annotated[
        str | None,
        typer.Option(metavar="TEXT", help="Only this subject, like policy or identical-body."),
    ] = None
    reason_contains: Annotated[
        str | None, typer.Option(metavar="TEXT", help="Only requests whose reason contains this.")
    ] = None
    since: Since = None
    until: Until = None

    def wanted(self, call: Invocation) -> HoldFilter:
        """Returns the filter; raises BadParameter for a time that cannot be read."""
        now = call.clock.now()
        low, high = (
            None if text is None else moment(text, now) for text in (self.since, self.until)
        )
        named = (self.source or "", self.handler or "", self.type_ or "")
        return HoldFilter(*named, self.subject or "", self.reason_contains or "", low, high)


@app.command("list")
@takes_options
def list_holds(
    call: Invocation,
    *,
    filters: Filters,
    limit: Limit = 1000,
) -> None:
    """List the runs that wait for approval, oldest first."""
    wanted = filters.wanted(call)
    # Only as many as are shown are in memory.
    found = nsmallest(limit, _found(call, wanted), key=lambda hold: hold.since or EPOCH)
    _list(call, found)
    if len(found) == limit and not call.as_json:
        call.output.note(f"Showing the oldest {limit}; see more with --limit or --since.")


def _found(call: Invocation, wanted: HoldFilter) -> Iterator[ApprovalRequest]:
    """Yields the requests that the filter selects; raises CommandError for unknown names."""
    some = False
    for hold in filter(wanted.fits, holds(call.target.ledger())):
        some = True
        yield hold
    if not some:
        source, handler = wanted.source or None, wanted.handler or None
        require_known(call.target, source=source, handler=handler)


def _list(call: Invocation, found: list[ApprovalRequest]) -> None:
    requests = _requests(call, found)
    if call.as_json:
        for hold in found:
            call.output.json(_object(hold, requests.get(hold.request)))
        return
    if not found:
        call.output.note("No runs wait for approval.")
        return
    rows = [_row(hold, requests.get(hold.request)) for hold in found]
    call.output.table(COLUMNS, rows, now=call.clock.now())
    inspect = call.program.command("inbox inspect", argument="EVENT_ID")
    options = ("--hold", "ID", "--reason", "TEXT")
    approve = call.program.command("hold approve", *options, argument="EVENT_ID")
    call.output.note(
        f"Inspect with `{inspect}`; decide with `{approve}`, or deny. For an effect that happened,"
        " add --happened --result JSON."
    )


def _requests(call: Invocation, found: Iterable[ApprovalRequest]) -> dict[Key | None, RequestRow]:
    """Returns the requests that people decide, by key; most runs wait for one operator."""
    keys = [hold.request for hold in found if hold.request is not None]
    rows = call.target.table.get_many(keys) if keys else ()
    return {Key(row["pk"], row["sk"]): RequestRow(row) for row in rows}


def _object(hold: ApprovalRequest, request: RequestRow | None = None) -> dict[str, Any]:
    """Returns an approval request as JSON data."""
    run = hold.run
    about = {"event_id": run.event_id, "handler": run.handler, "type": run.type}
    people = {} if request is None else {"people": request_object(request)}
    return {"source": run.source, **about, **hold_object(run), **people}


def _row(hold: ApprovalRequest, request: RequestRow | None) -> tuple[object, ...]:
    run = hold.run
    named = (hold.since, run.source, run.event_id, run.handler, hold.id)
    shows = (f"shows {hold.shows}",) if hold.shows else ()
    people = () if request is None else (request_line(request),)
    lines = (f"{hold.subject}: {hold.reason}", *shows, *people, *unannounced_lines(run))
    return (*named, lines)


@app.command("approve")
@takes_options
def approve(  # noqa: PLR0913 - one parameter per option
    call: Invocation,
    *,
    event_id: Named = None,
    filters: Filters,
    hold: HoldId = None,
    limit: Limit = 1000,
    yes: Yes = False,
    reason: Reason,
    by: By = None,
    happened: Annotated[
        bool, typer.Option("--happened", help="The effect in doubt happened; do not repeat it.")
    ] = False,
    result: Annotated[
        str | None, typer.Option(metavar="JSON", help="The effect's result; with --happened.")
    ] = None,
) -> None:
    """Approve a run; an effect in doubt is repeated with the same idempotency key.

    Where the people of a group approve, your AWS user or session must have the name of one of them,
    and the run stays held until enough have.
    With --happened the effect is recorded as committed instead, and the handler gets --result.
    Without EVENT_ID, approve all runs that the filters select; a dry run without --yes.
    """
    if result is not None and not happened:
        raise typer.BadParameter("--result needs --happened")
    wanted = filters.wanted(call)
    if event_id is None:
        if happened:
            raise typer.BadParameter("--happened needs EVENT_ID")
        one = partial(_deciding(call).approve, by=call.actor(by), reason=reason)
        bulk = partial(call.audited, AuditedAction.APPROVE, by, reason=reason)
        _decide(call, _selected(wanted, hold), limit, one, bulk, yes=yes)
        return
    _require_no_filter(wanted, yes=yes)
    returned = None if result is None else parsed(result)
    found = _the_one(call, event_id, filters, hold_id=hold)
    deciding, who = _deciding(call), call.actor(by)
    try:
        decision = (
            deciding.happened(found, returned, by=who, reason=reason)
            if happened
            else deciding.approve(found, by=who, reason=reason)
        )
    except (NoDoubt, Unstorable) as error:
        raise CommandError(str(error)) from error
    _show(call, found, decision)


@app.command("deny")
@takes_options
def deny(
    call: Invocation,
    *,
    event_id: Named = None,
    filters: Filters,
    hold: HoldId = None,
    limit: Limit = 1000,
    yes: Yes = False,
    reason: Reason,
    by: By = None,
) -> None:
    """Deny a run: it ends as skipped; effects that happened remain.

    Without EVENT_ID, deny all runs that the filters select; a dry run without --yes.
    """
    wanted = filters.wanted(call)
    if event_id is None:
        one = partial(_deciding(call).deny, by=call.actor(by), reason=reason)
        bulk = partial(call.audited, AuditedAction.DENY, by, reason=reason)
        _decide(call, _selected(wanted, hold), limit, one, bulk, yes=yes)
        return
    _require_no_filter(wanted, yes=yes)
    found = _the_one(call, event_id, filters, hold_id=hold)
    who = call.actor(by)
    _show(call, found, _deciding(call).deny(found, by=who, reason=reason))


def _selected(wanted: HoldFilter, hold_id: str | None) -> HoldFilter:
    """Returns the filter of a decision about several requests; raises BadParameter."""
    if hold_id is not None:
        raise typer.BadParameter("--hold needs EVENT_ID")
    if not wanted.subject:
        raise typer.BadParameter(
            "give EVENT_ID, or --subject and other filters: one decision is for one subject"
        )
    return wanted


def _require_no_filter(wanted: HoldFilter, *, yes: bool) -> None:
    """Raises BadParameter for the options of a decision about several requests."""
    if yes or any((wanted.type, wanted.subject, wanted.reason, wanted.since, wanted.until)):
        raise typer.BadParameter(
            "with EVENT_ID, only --source, --handler and --hold select the run"
        )


def _decide(
    call: Invocation,
    wanted: HoldFilter,
    limit: int,
    decide: Callable[[ApprovalRequest], Decision],
    audited: Callable[..., AbstractContextManager[Counter[str]]],
    *,
    yes: bool,
) -> None:
    """Decides all requests that the filter selects, as they are found; lists them without `yes`."""
    chosen = islice(_found(call, wanted), limit)
    if not yes:
        found = sorted(chosen, key=lambda hold: hold.since or EPOCH)
        _list(call, found)
        if found:
            call.output.note(
                f"Nothing was decided. Add --yes to decide {counted(len(found), 'run')}."
            )
        return
    try:
        with audited(**_texts(wanted), limit=str(limit)) as counts:
            for hold in chosen:
                decision = decide(hold)
                counts[decision.outcome] += 1
                if call.as_json:
                    call.output.json({**_object(hold), "outcome": str(decision.outcome)})
    except Unavailable as error:
        undecided = sum(counts[each] for each in UNDECIDED)
        raise CommandError(
            f"{error}; {counts.total() - undecided} were decided so far, and the same command"
            " continues with the rest"
        ) from error
    if not call.as_json:
        for outcome, count in counts.items():
            call.output.line(f"{count} {COUNTED[ApprovalOutcome(outcome)]}")
    if not counts:
        call.output.note("No runs wait for approval.")
    if counts.total() == limit:
        call.output.note(f"{limit} were decided; the same command continues with the rest.")


def _texts(wanted: HoldFilter) -> dict[str, str]:
    """Returns the filters that are given, for the audit."""
    return {name: str(value) for name, value in asdict(wanted).items() if value}


def _deciding(call: Invocation) -> Approvals:
    target = call.target
    return Approvals(known_manifest(target), target.ports(call.clock))


def _the_one(
    call: Invocation, event_id: str, filters: Filters, *, hold_id: str | None
) -> ApprovalRequest:
    """Returns the approval request; raises CommandError unless exactly one matches."""
    runs = call.runs(event_id, filters.source, filters.handler)
    listed = call.program.command("hold list")
    if not runs:
        subject = f"run of {filters.handler}" if filters.handler else "run"
        raise CommandError(f"no {subject} for an event {event_id}: see `{listed}`")
    found = [ApprovalRequest(run) for run in runs if run.status is Status.HELD]
    meant = [hold for hold in found if hold_id in {None, hold.id}]
    if len(meant) == 1:
        return meant[0]
    if not found:
        there = "; ".join(_told(run) for run in runs)
        raise CommandError(f"{there}: no approval request; see `{listed}`")
    there = "; ".join(_told(hold.run) for hold in found)
    if not meant:
        raise CommandError(
            f"{hold_id} is no current approval request of {event_id}: {there}."
            " Inspect the event and decide again"
        )
    raise CommandError(f"{there}: choose one with --handler, --source or --hold")


def _told(run: Run) -> str:
    if run.status is not Status.HELD:
        return f"{run.handler} of {run.source} is {run.status}"
    hold = ApprovalRequest(run)
    shows = f" ({hold.shows})" if hold.shows else ""
    return f"{run.handler} of {run.source} is held for {hold.subject} as {hold.id}{shows}"


def _meaning(decision: Decision) -> str:
    request = decision.request
    if request is None or decision.outcome in MEANINGS:
        return MEANINGS[decision.outcome]
    told = "approved" if decision.outcome is ApprovalOutcome.COUNTED else "you decided before"
    return f"{told}; {request_line(request)}; the run stays held"


def _not_asked(call: Invocation, request: RequestRow) -> str:
    people = people_of(request, known_manifest(call.target).approvers)
    asked = ", ".join(sorted(people)) or f"the people of {request.group}, which cannot be read"
    return (
        f"{call.caller} is not one of the people who are asked ({asked}), and {_NOTHING}: they"
        " decide with the link in their message, or with an AWS user or session of their name"
    )


def _show(call: Invocation, hold: ApprovalRequest, decision: Decision) -> None:
    run = hold.run
    if decision.outcome is ApprovalOutcome.MOVED_ON:
        there = _told(decision.run) if decision.run else "the run no longer exists"
        but = "only the effect was recorded as committed" if decision.committed else _NOTHING
        raise CommandError(f"the run changed meanwhile, and {but}: {there}")
    if decision.outcome is ApprovalOutcome.EXPIRED:
        raise CommandError(
            f"the event {run.event_id} has expired with its runs: {_NOTHING};"
            " ask the provider to send it again"
        )
    request = decision.request
    if decision.outcome is ApprovalOutcome.NOT_ASKED and request is not None:
        raise CommandError(_not_asked(call, request))
    if decision.outcome is ApprovalOutcome.CLOSED and request is not None:
        # Its run marks a request as expired when it looks.
        over = RequestState.EXPIRED if request.state is RequestState.OPEN else request.state
        raise CommandError(
            f"the request is {over}, and {_NOTHING}: its run ends or continues by itself"
        )
    if call.as_json:
        status = None if decision.run is None else str(decision.run.status)
        came = {"outcome": str(decision.outcome), "status": status}
        shown = {**_object(hold, request), **came, "committed": decision.committed}
        call.output.json(shown)
        return
    call.output.line(
        f"{run.handler} of {run.event_id}, held for {hold.subject}: {_meaning(decision)}"
    )
    if decision.committed is False:
        call.output.note("The effect was already committed; its recorded result is kept.")
    inspect = call.program.command("inbox inspect", "--source", run.source, argument=run.event_id)
    call.output.note(f"Follow it with `{inspect}`.")
