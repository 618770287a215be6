"""`replay`: invokes the replay function until all selected runs are sent."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import fields
from typing import Annotated, Any, Final

import typer

from webhook_inbox.adapters.system import SystemRandomness
from webhook_inbox.ledger import audit
from webhook_inbox.ledger.audit import AuditRecord
from webhook_inbox.replay.replay import SAMPLE, ReplayOutcome, ReplayReport
from webhook_inbox.replay.request import ReplayRequest
from webhookctl.checkout import require_known
from webhookctl.display.output import counted
from webhookctl.display.suggestions import Program
from webhookctl.display.table import Column, Fit
from webhookctl.display.times import iso, moment
from webhookctl.errors import CommandError
from webhookctl.invocation import (
    By,
    EventType,
    Handler,
    Invocation,
    Since,
    Source,
    Until,
    takes_options,
)
from webhookctl.target import Target

# Seconds of work per invocation at the given rate, so that progress is visible.
STEP_SECONDS: Final = 5
COLUMNS: Final = (
    Column("SOURCE", Fit.NAME),
    Column("EVENT_ID", Fit.ID),
    Column("HANDLER", Fit.NAME),
    Column("STATUS"),
    Column("OUTCOME"),
    Column("LAST_ERROR", Fit.NOTE),
)
MEANINGS: Final = {
    ReplayOutcome.REPLAYED: "sent again",
    ReplayOutcome.WOULD_REPLAY: "would be sent again",
    ReplayOutcome.UNSENT: "reset, not sent: the queue failed; the reconciler sends them",
    ReplayOutcome.FINISHED: "unchanged: finished (use --force with EVENT_ID and --handler)",
    ReplayOutcome.IN_USE: "unchanged: in progress",
    ReplayOutcome.HELD: "unchanged: held for an identical body; decide with `webhookctl hold list`",
    ReplayOutcome.EXPIRED: "unchanged: the event has expired; ask the provider to send it again",
    ReplayOutcome.MISSING: "not found: no event with this id",
}
SENT: Final = (ReplayOutcome.REPLAYED, ReplayOutcome.WOULD_REPLAY, ReplayOutcome.UNSENT)

Payload = dict[str, Any]


@takes_options
def replay(  # noqa: PLR0913 - one parameter per option
    call: Invocation,
    *,
    event_ids: Annotated[
        list[str] | None,
        typer.Argument(metavar="EVENT_ID", help="All unfinished runs of these events."),
    ] = None,
    source: Source = None,
    type_: EventType = None,
    handler: Handler = None,
    error_contains: Annotated[
        str | None, typer.Option(help="Only runs whose last error contains this.")
    ] = None,
    since: Since = None,
    until: Until = None,
    limit: Annotated[int, typer.Option(min=1, max=10_000, help="Maximum number of runs.")] = 1000,
    rate: Annotated[float, typer.Option(min=0.1, max=500, help="Runs per second.")] = 10.0,
    reason: Annotated[str, typer.Option(help="Recorded with each run.")] = "",
    by: By = None,
    force: Annotated[
        bool,
        typer.Option("--force", help="Replay finished runs too; with EVENT_ID and --handler."),
    ] = False,
    cursor: Annotated[
        str | None,
        typer.Option(help="Continue a replay that stopped; it printed the cursor."),
    ] = None,
    yes: Annotated[
        bool, typer.Option("--yes", help="Send the runs; without it, only list them.")
    ] = False,
) -> None:
    """Send dead runs to their queues again; a dry run without --yes.

    With EVENT_ID, all unfinished runs of these events are selected. --since and --until select by
    the time at which an event was received.
    """
    now = call.clock.now()
    filters = {
        "source": source,
        "type": type_,
        "handler": handler,
        "event_ids": event_ids or None,
        "error_contains": error_contains,
        "received_after": iso(moment(since, now)) if since else None,
        "received_before": iso(moment(until, now)) if until else None,
    }
    if force and not (event_ids and handler):
        raise typer.BadParameter("--force needs EVENT_ID and --handler")
    request: Payload = {name: value for name, value in filters.items() if value is not None}
    request |= {"rate_per_second": rate, "reason": reason, "force": force, "cursor": cursor}
    target = call.target
    request |= {"requested_by": call.caller, "on_behalf_of": by or ""}
    report = _run(call, target, request, limit) if yes else _total(target, request, limit)
    if report.matched == 0:
        require_known(target, source=source, handler=handler)
    _show(call, report, limit)


def _run(call: Invocation, target: Target, request: Payload, limit: int) -> ReplayReport:
    """Counts the runs to show progress; then replays them in steps."""
    expected = _total(target, request, limit)
    recorded = _recorded(call, target, request)
    request = {**request, "audit_row": recorded.place}
    total = ReplayReport(dry_run=False)
    step = max(1, int(request["rate_per_second"] * STEP_SECONDS))
    with call.output.progress("processed", expected.matched) as advance:
        for part in _reports(target, {**request, "dry_run": False}, limit, step):
            _add(total, part)
            if part.matched:
                advance(part.matched)
    recorded.conclude(total.counts)
    return total


def _recorded(call: Invocation, target: Target, request: Payload) -> AuditRecord:
    """Writes the audit row of the whole replay, which its pages name."""
    read = ReplayRequest.read(request)
    return audit.record(
        target.table,
        SystemRandomness(),
        action="replay",
        by=call.actor(read.on_behalf_of),
        reason=read.reason,
        request=read.audited(),
        event_ids=read.event_ids or (),
        forced=read.force,
        now=call.clock.now(),
    )


def _total(target: Target, request: Payload, limit: int) -> ReplayReport:
    total = ReplayReport(dry_run=True)
    for part in _reports(target, {**request, "dry_run": True}, limit, limit):
        _add(total, part)
    return total


def _reports(target: Target, request: Payload, limit: int, step: int) -> Iterator[ReplayReport]:
    """Yields a report per invocation until all runs are processed or the limit is reached."""
    left: int = limit
    cursor: str | None = request["cursor"]
    while left > 0:
        payload = {**request, "cursor": cursor, "limit": min(left, step)}
        report = invoke(target, payload)
        yield report
        left, cursor = left - report.matched, report.cursor
        # After a failure the next page repeats what failed, unless no run was replayed at all.
        if cursor is None or (report.failed and not report.matched):
            return


def invoke(target: Target, payload: Payload) -> ReplayReport:
    """Invokes the replay function once; raises CommandError if it fails."""
    answer = target.client("lambda").invoke(
        FunctionName=target.replay_function,
        InvocationType="RequestResponse",
        Payload=json.dumps(payload).encode(),
    )
    data = json.loads(answer["Payload"].read() or b"null")
    if answer.get("FunctionError"):
        message = data.get("errorMessage") if isinstance(data, dict) else None
        raise CommandError(
            f"the replay function failed: {message or 'see its log'}; runs sent so far stay sent,"
            " and the same command continues with the rest"
        )
    known = {field.name for field in fields(ReplayReport)}
    return ReplayReport(**{name: value for name, value in data.items() if name in known})


def _add(total: ReplayReport, part: ReplayReport) -> None:
    total.matched += part.matched
    total.dlq_removed += part.dlq_removed
    total.cursor = part.cursor
    total.failed = part.failed
    total.sample = [*total.sample, *part.sample][:SAMPLE]
    for outcome, count in part.counts.items():
        total.counts[outcome] = total.counts.get(outcome, 0) + count


def _show(call: Invocation, report: ReplayReport, limit: int) -> None:
    if call.as_json:
        call.output.json(report.to_data())
    else:
        _print(call, report)
        if not report.failed:
            call.output.note(_next_step(call.program, report, limit))
    if report.failed:
        raise CommandError(
            f"the replay stopped: {report.failed}; the runs that it counted stay replayed. Add"
            f" --cursor {report.cursor} to the same command to continue with the rest"
        )
    if report.matched == 0 and report.counts.get(ReplayOutcome.MISSING):
        raise typer.Exit(1)


def _print(call: Invocation, report: ReplayReport) -> None:
    call.output.line(_heading(report))
    call.output.line(f"  {counted(report.matched, 'run')} found")
    for outcome, count in report.counts.items():
        call.output.line(f"  {count} {MEANINGS[ReplayOutcome(outcome)]}")
    if report.dlq_removed:
        removed = counted(report.dlq_removed, "message")
        call.output.line(f"  {removed} removed from the DLQs: their runs are done or replayed")
    if report.sample:
        call.output.line()
        call.output.table(COLUMNS, [_row(entry) for entry in report.sample])
        if report.matched > len(report.sample):
            call.output.line(f"Showing {len(report.sample)} of {report.matched}.")


def _heading(report: ReplayReport) -> str:
    if report.dry_run:
        return "dry run: nothing was sent"
    return "replayed" if _sent(report) else "nothing was sent"


def _sent(report: ReplayReport) -> int:
    return sum(report.counts.get(outcome, 0) for outcome in SENT)


def _row(entry: Mapping[str, Any]) -> list[object]:
    would = entry.get("outcome") == ReplayOutcome.WOULD_REPLAY
    shown = {**entry, "outcome": MEANINGS[ReplayOutcome.WOULD_REPLAY]} if would else entry
    return [shown.get(column.title.lower(), "") for column in COLUMNS]


def _next_step(program: Program, report: ReplayReport, limit: int) -> str:
    more = f" More than {limit} match: raise --limit." if report.cursor else ""
    if not _sent(report):
        dead = program.command("inbox list", "--status", "dead_letter")
        return f"Nothing to replay; see `{dead}`.{more}"
    if report.dry_run:
        return "Add --yes to send them." + more
    pending = program.command("inbox list", "--status", "pending")
    return f"List runs that have not started with `{pending}`.{more}"
