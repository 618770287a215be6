"""Prints the plan of a replay, what was sent, and the outcome of a canary."""

from typing import Any, Final

from webhook_inbox.client.replays import ReplayPlan, RunningReplay
from webhook_inbox.domain.printable import counted
from webhook_inbox.domain.replay_cost import estimate
from webhook_inbox.domain.replay_report import (
    ReplayOutcome,
    ReplayReport,
    ReportedRun,
    SampledRun,
    most,
)
from webhookctl.display.json_object import json_object
from webhookctl.display.output import Output, priced
from webhookctl.display.table import Column, Fit

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
    ReplayOutcome.ADDED: "created and sent: the event was stored without this run",
    ReplayOutcome.WOULD_ADD: "would be created and sent: the event was stored without this run",
    ReplayOutcome.UNSENT: "reset, not sent: the queue failed; the reconciler sends them",
    ReplayOutcome.ALREADY_REPLAYED: "unchanged: replayed or changed since they were listed",
    ReplayOutcome.FINISHED: "unchanged: finished (--force repeats them)",
    ReplayOutcome.IN_USE: "unchanged: in progress",
    ReplayOutcome.HELD: "unchanged: their events are held; decide with `webhookctl hold list`",
    ReplayOutcome.EXPIRED: "unchanged: the event has expired; ask the provider to send it again",
    ReplayOutcome.MISSING: "not found: no event with this id",
}


@json_object.register(ReplayPlan | RunningReplay)
def _(result: ReplayPlan | RunningReplay) -> Any:
    return result.report.to_data()


def print_plan(output: Output, plan: ReplayPlan) -> None:
    """Prints a dry run."""
    report = plan.report
    output.line("dry run: nothing was sent")
    output.line(f"  {'' if plan.complete else 'at least '}{counted(report.matched, 'run')} found")
    _counts(output, report)
    if report.sent:
        _warnings(output, report)
        _groups(output, report)
        output.text(f"estimated cost: {_cost(report.sent)}", indent="  ", hanging="  ")
    _sample(output, report)


def next_step(plan: ReplayPlan, first: int | None) -> str:
    """Returns the note below a dry run: the commands that send its runs."""
    report, limit = plan.report, plan.options.limit
    more = f" More than {limit} match: raise --limit." if plan.is_cut else ""
    if not report.sent and plan.complete:
        return _nothing(plan) + more
    if not report.sent:
        why = f" ({plan.failed})" if plan.failed else ""
        return (
            f"The search has not ended{why}: narrow it with filters such as --since and"
            " --handler, or add --yes, which sends the runs as they are found."
        )
    runs = _runs(plan)
    which = "this run" if runs == "1 run" else f"these {runs}"
    these = f"Send {which} with `{plan.command(first)}`"
    if plan.filters is None:
        return these + "."
    if plan.is_list_needed:
        return f"{these}.{more}"
    return f"{these}, or all that match when it runs with `{plan.command_of_all(first)}`.{more}"


def print_replay(output: Output, replay: RunningReplay) -> None:
    """Prints what was sent, and the outcomes that are known."""
    report = replay.report
    output.line("replayed" if report.sent else "nothing was sent")
    found = sum(report.counts.values()) - report.counts.get(ReplayOutcome.MISSING, 0)
    if replay.first and replay.plan.report.sent > report.sent:
        output.line(f"  the first {report.sent} of {_runs(replay.plan)}")
    else:
        output.line(f"  {counted(found, 'run')} found")
    _counts(output, report)
    if report.dlq_removed:
        removed = counted(report.dlq_removed, "message")
        output.line(f"  {removed} removed from the DLQs: their runs are done or replayed")
    if report.outcomes:
        counts = ", ".join(f"{number} {status}" for status, number in report.outcomes.items())
        output.line(f"  since then: {counts}")
    if report.failures:
        output.line()
        output.table(COLUMNS, [_row(each, "failed again") for each in report.failures])
        return
    _sample(output, report)


def after(replay: RunningReplay) -> str:
    """Returns the note below a replay that was not stopped: what can be done next."""
    plan = replay.plan
    if not replay.report.sent:
        return _nothing(plan)
    if replay.first:
        return f"Continue with the rest: `{plan.command()}`."
    pending = plan.program.command("inbox list", "--status", "pending")
    more = f" More than {plan.options.limit} match: raise --limit." if plan.is_cut else ""
    return f"List runs that have not started with `{pending}`.{more}"


def resumption(replay: RunningReplay) -> str:
    """Returns the note below a replay that was interrupted: the command that resumes it."""
    plan = replay.plan
    rest = "" if plan.complete else "; the search had not ended, so run this command again too"
    return (
        f"Interrupted; the step under way ends by itself. Continue with `{plan.command()}`{rest}."
    )


def _runs(plan: ReplayPlan) -> str:
    return f"{'' if plan.complete else 'at least '}{counted(plan.report.sent, 'run')}"


def _nothing(plan: ReplayPlan) -> str:
    dead = plan.program.command("inbox list", "--status", "dead_letter")
    return f"Nothing to replay; see `{dead}`."


def _counts(output: Output, report: ReplayReport) -> None:
    for outcome, count in report.counts.items():
        output.line(f"  {count} {MEANINGS[ReplayOutcome(outcome)]}")
    if report.unsearched:
        output.line(f"  {report.unsearched} not searched by --where: the body is over 1 MB or gone")


def _warnings(output: Output, report: ReplayReport) -> None:
    notes = (
        (report.retrying, "have a retry pending, which the replay replaces"),
        (
            report.repeated,
            "are finished and would be repeated; effects keep their keys, so recorded ones are not"
            " executed again",
        ),
        (
            report.batches,
            "split a whole batch: the split continues, and items that have runs are not repeated;"
            " select items by their own ids",
        ),
    )
    for number, text in notes:
        if number:
            output.text(f"{number} of them {text}", indent="  ", hanging="  ")


def _groups(output: Output, report: ReplayReport) -> None:
    handlers = sorted(report.handlers.items(), key=lambda each: (-each[1], each[0]))
    for title, counts in (("by handler", dict(handlers)), ("by error", most(report.errors))):
        output.line(f"  {title}:")
        for name, number in counts.items():
            output.text(f"{number:>6}  {name}", indent="", hanging=" " * 8)


def _cost(runs: int) -> str:
    about = estimate(runs)
    requests = f"{about.writes} writes, {about.reads} reads, {about.messages} messages"
    return f"{priced(about.dollars)} ({requests}; {about.prices})"


def _sample(output: Output, report: ReplayReport) -> None:
    if not report.sample:
        return
    output.line()
    output.table(COLUMNS, [_row(each, _outcome(each)) for each in report.sample])
    total = sum(report.counts.values())
    if total > len(report.sample):
        output.line(f"Showing {len(report.sample)} of {total}.")


def _outcome(run: SampledRun) -> str:
    would = run.outcome == ReplayOutcome.WOULD_REPLAY
    return MEANINGS[ReplayOutcome.WOULD_REPLAY] if would else run.outcome


def _row(run: ReportedRun, outcome: str) -> tuple[object, ...]:
    return run.source, run.event_id, run.handler, run.status, outcome, run.last_error
