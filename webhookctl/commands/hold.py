"""`hold`: lists and decides approval requests."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Final

import typer

from webhook_inbox.client.holds import DecidedHold, HeldRun, HoldDecision, HoldFilter
from webhook_inbox.client.operation import Operation
from webhook_inbox.domain.model import ApprovalOutcome
from webhook_inbox.domain.printable import counted
from webhook_inbox.domain.timestamps import EPOCH
from webhookctl.command_tree import CommandTree
from webhookctl.display.runs import people_line, unannounced_lines
from webhookctl.display.table import Column, Fit
from webhookctl.display.times import moment
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
    found = call.client.holds.list(filters.wanted(call), limit=limit)
    _list(call, list(found))
    if found.full and not call.as_json:
        call.output.note(f"Showing the oldest {limit}; see more with --limit or --since.")


def _list(call: Invocation, found: list[HeldRun]) -> None:
    if call.as_json:
        call.output.results(found)
        return
    if not found:
        call.output.note("No runs wait for approval.")
        return
    call.output.table(COLUMNS, [_row(hold) for hold in found], now=call.clock.now())
    inspect = call.program.command("inbox inspect", argument="EVENT_ID")
    options = ("--hold", "ID", "--reason", "TEXT")
    approve = call.program.command("hold approve", *options, argument="EVENT_ID")
    call.output.note(
        f"Inspect with `{inspect}`; decide with `{approve}`, or deny. For an effect that happened,"
        " add --happened --result JSON."
    )


def _row(hold: HeldRun) -> tuple[object, ...]:
    named = (hold.held_at, hold.source, hold.event_id, hold.handler, hold.hold)
    shows = (f"shows {hold.shows}",) if hold.shows else ()
    people = () if hold.people is None else (people_line(hold.people),)
    lines = (f"{hold.subject}: {hold.reason}", *shows, *people, *unannounced_lines(hold))
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
    if happened and event_id is None:
        raise typer.BadParameter("--happened needs EVENT_ID")
    holds, wanted = call.client.holds, filters.wanted(call)
    if event_id is None:
        _require_subject(wanted, hold)
        _decide_all(call, wanted, limit, by, reason, holds.approve_all if yes else None)
        return
    _require_no_filter(wanted, yes=yes)
    returned = None if result is None else parsed(result)
    one = partial(holds.confirm_effect, result=returned) if happened else holds.approve
    names = {"source": filters.source, "handler": filters.handler, "hold": hold}
    _show(call, one(event_id, **names, reason=reason, by=call.actor(by)))


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
    holds, wanted = call.client.holds, filters.wanted(call)
    if event_id is None:
        _require_subject(wanted, hold)
        _decide_all(call, wanted, limit, by, reason, holds.deny_all if yes else None)
        return
    _require_no_filter(wanted, yes=yes)
    names = {"source": filters.source, "handler": filters.handler, "hold": hold}
    _show(call, holds.deny(event_id, **names, reason=reason, by=call.actor(by)))


def _require_subject(wanted: HoldFilter, hold_id: str | None) -> None:
    """Raises BadParameter unless the filter is that of a decision about several requests."""
    if hold_id is not None:
        raise typer.BadParameter("--hold needs EVENT_ID")
    if not wanted.subject:
        raise typer.BadParameter(
            "give EVENT_ID, or --subject and other filters: one decision is for one subject"
        )


def _require_no_filter(wanted: HoldFilter, *, yes: bool) -> None:
    """Raises BadParameter for the options of a decision about several requests."""
    if yes or any((wanted.type, wanted.subject, wanted.reason, wanted.since, wanted.until)):
        raise typer.BadParameter(
            "with EVENT_ID, only --source, --handler and --hold select the run"
        )


def _decide_all(
    call: Invocation,
    wanted: HoldFilter,
    limit: int,
    by: str | None,
    reason: str,
    decide: Callable[..., Operation[DecidedHold]] | None,
) -> None:
    """Decides all requests that the filter selects; lists them without `decide`."""
    if decide is None:
        chosen = call.client.holds.list(wanted, limit=limit, oldest_first=False)
        found = sorted(chosen, key=lambda hold: hold.held_at or EPOCH)
        _list(call, found)
        if found:
            call.output.note(
                f"Nothing was decided. Add --yes to decide {counted(len(found), 'run')}."
            )
        return
    decided = decide(wanted, limit=limit, reason=reason, by=call.actor(by))
    for each in decided:
        if call.as_json:
            call.output.results([each])
    if not call.as_json:
        for outcome, count in decided.counts.items():
            call.output.line(f"{count} {COUNTED[ApprovalOutcome(outcome)]}")
    if not decided.counts:
        call.output.note("No runs wait for approval.")
    if decided.counts.total() == limit:
        call.output.note(f"{limit} were decided; the same command continues with the rest.")


def _show(call: Invocation, decision: HoldDecision) -> None:
    hold = decision.hold
    meaning = f"{hold.handler} of {hold.event_id}, held for {hold.subject}: {_meaning(decision)}"
    call.output.result(decision, meaning)
    if call.as_json:
        return
    if decision.committed is False:
        call.output.note("The effect was already committed; its recorded result is kept.")
    inspect = call.program.command("inbox inspect", "--source", hold.source, argument=hold.event_id)
    call.output.note(f"Follow it with `{inspect}`.")


def _meaning(decision: HoldDecision) -> str:
    people = decision.hold.people
    if people is None or decision.outcome in MEANINGS:
        return MEANINGS[decision.outcome]
    word = "approved" if decision.outcome is ApprovalOutcome.COUNTED else "you decided before"
    return f"{word}; {people_line(people)}; the run stays held"
