"""Prints what a replay found, sent, and became of it."""

from collections.abc import Mapping
from typing import Any, Final

from webhook_inbox.replay.cost import estimate
from webhook_inbox.replay.report import ReplayOutcome, ReplayReport, most
from webhookctl.display.output import Output, counted, priced
from webhookctl.display.table import Column, Fit
from webhookctl.replaying import Found

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


def listed(output: Output, found: Found) -> None:
    """Prints a dry run."""
    report = found.report
    output.line("dry run: nothing was sent")
    least = "" if found.complete else "at least "
    output.line(f"  {least}{counted(report.matched, 'run')} found")
    _counts(output, report)
    if report.sent:
        _warnings(output, report)
        _groups(output, report)
        output.text(f"estimated cost: {_cost(report.sent)}", indent="  ", hanging="  ")
    _sample(output, report)


def sent(output: Output, report: ReplayReport, of: Found | None = None) -> None:
    """Prints what was sent, and the outcomes that are known.

    `of` are the runs of which only the first were sent.
    """
    output.line("replayed" if report.sent else "nothing was sent")
    found = sum(report.counts.values()) - report.counts.get(ReplayOutcome.MISSING, 0)
    if of is not None and of.report.sent > report.sent:
        output.line(f"  the first {report.sent} of {of.runs}")
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
        output.table(
            COLUMNS, [_row({**each, "outcome": "failed again"}) for each in report.failures]
        )
        return
    _sample(output, report)


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
    requests = f"{about['writes']} writes, {about['reads']} reads, {about['messages']} messages"
    return f"{priced(about['dollars'])} ({requests}; {about['prices']})"


def _sample(output: Output, report: ReplayReport) -> None:
    if not report.sample:
        return
    output.line()
    output.table(COLUMNS, [_row(entry) for entry in report.sample])
    total = sum(report.counts.values())
    if total > len(report.sample):
        output.line(f"Showing {len(report.sample)} of {total}.")


def _row(entry: Mapping[str, Any]) -> list[object]:
    would = entry.get("outcome") == ReplayOutcome.WOULD_REPLAY
    shown = {**entry, "outcome": MEANINGS[ReplayOutcome.WOULD_REPLAY]} if would else entry
    return [shown.get(column.title.lower(), "") for column in COLUMNS]
