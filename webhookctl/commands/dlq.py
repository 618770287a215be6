"""`dlq list`: the messages of each dead-letter queue, and the dead runs that they belong to."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import islice
from typing import Annotated, Any, Final

import typer

from webhook_inbox.client.names import known_manifest
from webhook_inbox.client.times import iso, span
from webhook_inbox.domain.manifest import Manifest
from webhook_inbox.domain.model import Run
from webhook_inbox.domain.timestamps import from_ms
from webhook_inbox.ledger.schema import DEAD_FROM, RUN_LIFE
from webhookctl.command_tree import CommandTree
from webhookctl.display.output import cut
from webhookctl.display.table import Column, Fit
from webhookctl.errors import CommandError
from webhookctl.explain.failures import group_of
from webhookctl.invocation import Invocation, takes_options
from webhookctl.preflight.reader import Reader, Unread
from webhookctl.queue_depth import Depth, depths

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
ERROR_SHOWN: Final = 160
FEWER: Final = "messages that SQS has yet to move, or that were deleted; replay works without them"
MORE: Final = (
    "messages of runs that are not dead, which the hourly sweep deletes, or that are not the"
    " inbox's"
)
SERIAL: Final = "a serial lane's dead runs have no message"

app: Final = CommandTree(help="List the dead-letter queues.")


@app.callback()
def dlq() -> None:
    """List the dead-letter queues."""


@dataclass(frozen=True, slots=True)
class Cause:
    """Dead runs of one handler that ended with one error, but for its ids and numbers."""

    handler: str
    error: str
    runs: int
    oldest: datetime


@app.command("list")
@takes_options
def list_dlqs(
    call: Invocation,
    *,
    limit: Annotated[int, typer.Option(min=1, help="Maximum number of dead runs read.")] = 1000,
) -> None:
    """List the messages of each dead-letter queue, and the dead runs by handler and error.

    Messages are counted by SQS and not received, since receiving would hide them. Dead runs are
    counted in the ledger, oldest event first, up to --limit.
    """
    target, now = call.target, call.clock.now()
    try:
        found = depths(target, Reader(target.client), target.dlq_urls)
    except Unread as error:
        raise CommandError(f"the dead-letter queues cannot be read: {error}") from error
    runs = _dead_runs(call, limit + 1)
    complete, runs = len(runs) <= limit, runs[:limit]
    manifest = known_manifest(target)
    deaths: dict[str, list[datetime]] = {lane: [] for lane in found}
    for run, received in runs:
        deaths.setdefault(manifest.lane_of(run.handler), []).append(run.dead_at or received)
    lanes = [
        _lane_object(lane, depth, deaths[lane], manifest, complete=complete, now=now)
        for lane, depth in found.items()
    ]
    causes = _causes(runs)
    if call.as_json:
        for each in (*lanes, *map(_cause_object, causes)):
            call.output.json(each)
        return
    call.output.table(LANES, [_lane_row(each) for each in lanes])
    if causes:
        call.output.line()
        call.output.table(GROUPS, [_cause_row(each) for each in causes], now=now)
        replay = call.program.command("replay", "--handler", causes[0].handler)
        call.output.note(f"Once the cause is fixed, see what a replay would send: `{replay}`.")


def _dead_runs(call: Invocation, limit: int) -> list[tuple[Run, datetime]]:
    """Returns the dead runs with the time at which their event was received, to the second."""
    found = (
        (run, from_ms(entry.due_at - DEAD_FROM) - RUN_LIFE)
        for entry, run in call.target.ledger().dead_runs()
        if run is not None
    )
    return list(islice(found, limit))


def _causes(runs: list[tuple[Run, datetime]]) -> list[Cause]:
    """Returns the runs grouped as by `inbox errors`, the largest group first."""
    groups: dict[tuple[str, str], list[datetime]] = {}
    for run, received in runs:
        group = group_of(run)
        kind = group.error_class if group.error_class not in group.message else ""
        place = group.error_line and f"({group.error_line})"
        what = ": ".join(filter(None, (kind, group.message)))
        error = cut(" ".join(filter(None, (what, place))), ERROR_SHOWN)
        groups.setdefault((run.handler, error), []).append(received)
    causes = [Cause(*named, len(times), min(times)) for named, times in groups.items()]
    return sorted(causes, key=lambda cause: (-cause.runs, cause.handler, cause.error))


def _lane_object(
    lane: str,
    depth: Depth,
    deaths: list[datetime],
    manifest: Manifest,
    *,
    complete: bool,
    now: datetime,
) -> dict[str, Any]:
    return {
        "lane": lane,
        "messages": depth.visible + depth.in_flight + depth.delayed,
        "oldest_seconds": int((now - min(deaths)).total_seconds()) if deaths else None,
        "dead_runs": len(deaths),
        "dead_runs_is_complete": complete,
        "serial": lane in manifest.serial_lanes,
    }


def _cause_object(cause: Cause) -> dict[str, Any]:
    return {
        "handler": cause.handler,
        "error": cause.error,
        "runs": cause.runs,
        "oldest": iso(cause.oldest),
    }


def _lane_row(lane: Mapping[str, Any]) -> tuple[object, ...]:
    age = lane["oldest_seconds"]
    oldest = "-" if age is None else span(timedelta(seconds=age))
    least = "" if lane["dead_runs_is_complete"] else "at least "
    return (lane["lane"], lane["messages"], oldest, f"{least}{lane['dead_runs']}", _note(lane))


def _note(lane: Mapping[str, Any]) -> str:
    """Returns what the difference of the two numbers means; both are approximate."""
    if lane["serial"]:
        return SERIAL if lane["dead_runs"] else ""
    if not lane["dead_runs_is_complete"]:
        return ""
    difference = lane["messages"] - lane["dead_runs"]
    if not difference:
        return ""
    return f"{abs(difference)} {'more: ' + MORE if difference > 0 else 'fewer: ' + FEWER}"


def _cause_row(cause: Cause) -> tuple[object, ...]:
    return cause.runs, cause.handler, cause.oldest, cause.error
