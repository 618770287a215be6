"""`replay`: shows the runs that match as a fixed selection, then sends them."""

from typing import Annotated, Final

import typer

from webhook_inbox.client.replays import (
    LIMIT,
    RATE,
    ReplayFilter,
    ReplayOptions,
    ReplayPlan,
    RunningReplay,
)
from webhook_inbox.domain.model import BY_RECEIPT, EventStatus
from webhookctl.display import replay as display
from webhookctl.display.times import moment
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

_INTERRUPTED: Final = 130


@takes_options
def replay(  # noqa: PLR0913 - one parameter per option
    call: Invocation,
    *,
    event_ids: Annotated[
        list[str] | None,
        typer.Argument(metavar="EVENT_ID", help="All unfinished runs of these events."),
    ] = None,
    status: Annotated[
        list[EventStatus] | None,
        typer.Option(help="Only runs in this status; may be repeated. By default dead ones."),
    ] = None,
    source: Source = None,
    type_: EventType = None,
    handler: Handler = None,
    error_contains: Annotated[
        str | None, typer.Option(help="Only runs whose last error contains this.")
    ] = None,
    error_class: Annotated[
        str | None, typer.Option(help="Only runs whose last error is of this class.")
    ] = None,
    error_group: Annotated[
        str | None, typer.Option(metavar="ID", help="Only this group of `inbox errors`.")
    ] = None,
    tenant: Annotated[str | None, typer.Option(help="Only runs of this tenant.")] = None,
    where: Annotated[
        str | None,
        typer.Option(metavar="JMESPATH", help="Only events whose JSON body satisfies this."),
    ] = None,
    since: Since = None,
    until: Until = None,
    selection: Annotated[
        str | None, typer.Option(metavar="ID", help="The runs that a dry run listed, no others.")
    ] = None,
    first: Annotated[
        int | None,
        typer.Option(min=1, max=200, help="Send only so many, and wait for their outcome."),
    ] = None,
    stop_at_failures: Annotated[
        str, typer.Option(metavar="PERCENT", help="Stop if more of the sent runs fail again.")
    ] = "20%",
    limit: Annotated[int, typer.Option(min=1, max=10_000, help="Maximum number of runs.")] = LIMIT,
    rate: Annotated[float, typer.Option(min=0.1, max=500, help="Runs per second.")] = RATE,
    reason: Annotated[str, typer.Option(help="Recorded with each run.")] = "",
    by: By = None,
    force: Annotated[
        bool, typer.Option("--force", help="Replay finished runs too; needs --reason.")
    ] = False,
    new_keys: Annotated[
        bool,
        typer.Option("--new-keys", help="Perform every effect again, under new keys; --reason."),
    ] = False,
    cursor: Annotated[
        str | None,
        typer.Option(help="Begin the search where an invocation of the function stopped."),
    ] = None,
    yes: Annotated[
        bool, typer.Option("--yes", help="Send the runs; without it, only list them.")
    ] = False,
) -> None:
    """Send dead runs to their queues again; a dry run without --yes.

    A dry run lists the runs that match as a selection, which --selection sends later: these runs,
    each once. --since and --until select by the time at which an event was received.

    Example: webhookctl --local replay --error-class KeyError --first 1 --yes
    """
    now = call.clock.now()
    filters = ReplayFilter(
        event_ids=tuple(event_ids or ()),
        status=tuple(status or ()),
        source=source,
        type=type_,
        handler=handler,
        error_contains=error_contains,
        error_class=error_class,
        error_group=error_group,
        tenant=tenant,
        where=where,
        since=moment(since, now) if since else None,
        until=moment(until, now) if until else None,
    )
    stop = _share(stop_at_failures)
    options = ReplayOptions(rate, reason, force, new_keys, stop, limit)
    _check(filters, options, selection=selection, yes=yes)
    who, replays = call.actor(by), call.client.replays
    if selection:
        plan = replays.resume(selection, options, by=who)
    else:
        plan = replays.plan(filters, options, by=who, cursor=cursor)
    if yes:
        _send(call, replays.start(plan, by=who, first=first))
    else:
        _list(call, plan, first)


def _check(
    filters: ReplayFilter, options: ReplayOptions, *, selection: str | None, yes: bool
) -> None:
    """Refuses what the client would refuse, in the names of the options."""
    is_given = filters != ReplayFilter()
    if selection and is_given:
        raise typer.BadParameter("--selection is a fixed list of runs: leave the filters out")
    if not selection and not is_given:
        raise typer.BadParameter(
            "give at least one filter: EVENT_ID, --status (dead_letter for every dead run),"
            " --source, --type, --handler, --error-contains, --error-class, --error-group,"
            " --tenant, --where, --since, --until; or --selection"
        )
    by_time = BY_RECEIPT & set(filters.status)
    if by_time and not filters.event_ids and filters.since is None:
        names = ", ".join(sorted(by_time))
        raise typer.BadParameter(f"--status {names} needs --since: such runs are found by time")
    repeats = {"--force": options.force, "--new-keys": options.new_keys}
    for option in (name for name, chosen in repeats.items() if chosen and yes):
        if not (selection or (filters.event_ids and filters.handler)):
            raise typer.BadParameter(
                f"{option} --yes needs EVENT_ID and --handler, or --selection: a dry run lists the"
                " runs"
            )
        if not options.reason.strip():
            raise typer.BadParameter(f"{option} needs --reason")


def _share(text: str) -> float:
    """Returns 0.2 of `20%`; raises BadParameter unless it is over 0 % and at most 100 %."""
    try:
        share = float(text.removesuffix("%")) / 100
    except ValueError:
        share = 0.0
    if not 0 < share <= 1:
        raise typer.BadParameter(f"--stop-at-failures {text!r} is not a percentage such as 20%")
    return share


def _list(call: Invocation, plan: ReplayPlan, first: int | None) -> None:
    if call.as_json:
        call.output.results([plan])
    else:
        display.print_plan(call.output, plan)
        call.output.note(display.next_step(plan, first))
    if plan.error is not None:
        raise plan.error
    _exit_if_missing(plan)


def _send(call: Invocation, replay: RunningReplay) -> None:
    least = "" if replay.plan.complete else f" (at least {replay.plan.report.sent} found so far)"
    try:
        with call.output.progress(f"processed{least}", replay.total) as advance:
            for processed in replay:
                advance(processed)
    except KeyboardInterrupt:
        replay.stop()
        call.output.note(display.resumption(replay))
        raise typer.Exit(_INTERRUPTED) from None
    if replay.has_canary:
        _wait(call, replay)
    if call.as_json:
        call.output.results([replay])
    else:
        display.print_replay(call.output, replay)
    if replay.error is not None:
        raise replay.error
    if not call.as_json:
        call.output.note(display.after(replay))
    _exit_if_missing(replay)


def _wait(call: Invocation, replay: RunningReplay) -> None:
    try:
        with call.output.progress("ended", replay.report.sent) as advance:
            for ended in replay.wait():
                advance(ended)
    except KeyboardInterrupt:
        # The canary is sent; its outcome is not waited for.
        replay.stop()


def _exit_if_missing(result: ReplayPlan | RunningReplay) -> None:
    if result.report.matched == 0 and result.report.counts.get("missing"):
        raise typer.Exit(1)
