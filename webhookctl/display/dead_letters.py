"""Prints the dead-letter queues, and the dead runs by their cause."""

from datetime import datetime
from typing import Any, Final

from webhook_inbox.client.dead_letters import DeadLetterLane, DeadLetterSummary
from webhook_inbox.client.times import span
from webhookctl.display.json_object import json_object
from webhookctl.display.output import Output
from webhookctl.display.table import Column, Fit

LANES: Final = (
    Column("LANE", Fit.NAME),
    Column("MESSAGES"),
    Column("OLDEST"),
    Column("DEAD_RUNS"),
    Column("NOTE", Fit.NOTE),
)
GROUPS: Final = (
    Column("RUNS"),
    Column("HANDLER", Fit.NAME),
    Column("OLDEST"),
    Column("ERROR", Fit.NOTE),
)
FEWER: Final = "messages that SQS has yet to move, or that were deleted; replay works without them"
MORE: Final = (
    "messages of runs that are not dead, which the hourly sweep deletes, or that are not the"
    " inbox's"
)
SERIAL: Final = "a serial lane's dead runs have no message"


@json_object.register
def _(lane: DeadLetterLane) -> Any:
    return {
        "lane": lane.lane,
        "messages": lane.messages,
        "oldest_seconds": None if lane.oldest is None else int(lane.oldest.total_seconds()),
        "dead_runs": lane.dead_runs,
        "dead_runs_is_complete": lane.is_complete,
        "serial": lane.serial,
    }


def print_summary(output: Output, summary: DeadLetterSummary, now: datetime) -> None:
    """Prints a table of the queues, and one of the causes."""
    output.table(LANES, [_row(each) for each in summary.lanes])
    if summary.causes:
        output.line()
        rows = [(each.runs, each.handler, each.oldest, each.error) for each in summary.causes]
        output.table(GROUPS, rows, now=now)


def _row(lane: DeadLetterLane) -> tuple[object, ...]:
    oldest = "-" if lane.oldest is None else span(lane.oldest)
    least = "" if lane.is_complete else "at least "
    return (lane.lane, lane.messages, oldest, f"{least}{lane.dead_runs}", _note(lane))


def _note(lane: DeadLetterLane) -> str:
    """Returns what the difference of the two numbers means; both are approximate."""
    if lane.serial:
        return SERIAL if lane.dead_runs else ""
    if not lane.is_complete:
        return ""
    difference = lane.messages - lane.dead_runs
    if not difference:
        return ""
    return f"{abs(difference)} {'more: ' + MORE if difference > 0 else 'fewer: ' + FEWER}"
