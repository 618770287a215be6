"""`inbox errors`: groups the failed runs by their cause."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any, Final

import typer

from webhook_inbox.client.names import require_known
from webhook_inbox.client.suggestions import Command
from webhook_inbox.client.times import iso, relative
from webhook_inbox.domain.model import Run, Status
from webhook_inbox.domain.ports import Key
from webhook_inbox.domain.quotas import token
from webhook_inbox.ledger.queries import Ledger
from webhook_inbox.ledger.schema import DEAD_FROM, RUN_LIFE, dead_due_at, key_of_run
from webhookctl.display.output import counted
from webhookctl.display.times import moment
from webhookctl.explain.failures import FailureGroups, Failures
from webhookctl.invocation import (
    EventType,
    Handler,
    Invocation,
    Limit,
    Since,
    Source,
    Tenant,
    Until,
    takes_options,
)
from webhookctl.search import Wanted

# The failing runs that are recognised if they die while the command reads.
REMEMBERED: Final = 10_000
FAILED: Final = (Status.FAILED, Status.DEAD_LETTER)


@takes_options
def errors(
    call: Invocation,
    *,
    source: Source = None,
    type_: EventType = None,
    handler: Handler = None,
    status: Annotated[
        Status | None,
        typer.Option(metavar="STATUS", help=f"Only runs in this status: {', '.join(FAILED)}."),
    ] = None,
    tenant: Tenant = None,
    since: Since = None,
    until: Until = None,
    limit: Limit = 20,
) -> None:
    """Group failing and dead runs by handler, error class, line and message, the largest first.

    --since and --until select by the time at which an event was received. Quoted texts, ids,
    numbers and times in a message are replaced by their kind, unless they are the same in every
    run.
    """
    if status not in {None, *FAILED}:
        raise typer.BadParameter(f"--status {status}: use {' or '.join(FAILED)}")
    now = call.clock.now()
    low, high = (None if text is None else moment(text, now) for text in (since, until))
    wanted = Wanted(source, type_, None, handler, low, high, tenant and token(tenant))
    groups = FailureGroups()
    groups.add(_failed(call.target.ledger(), wanted, status))
    if not groups.groups:
        require_known(call.target, source=source, handler=handler)
    advice = Advice(call, groups, _options(wanted))
    shown = groups.largest(limit)
    for each in shown:
        if call.as_json:
            call.output.json(_object(advice, each))
        else:
            _print(call, advice, each)
    _note(call, groups, shown)


@dataclass(frozen=True, slots=True)
class Advice:
    """The commands for a group, with the filters that the groups were made with."""

    call: Invocation
    groups: FailureGroups
    filters: tuple[str, ...]

    def inspect(self, found: Failures) -> Command:
        """Returns the command that shows the example."""
        source, event_id = found.example
        return self.call.program.command("inbox inspect", "--source", source, argument=event_id)

    def replay(self, found: Failures) -> Command | None:
        """Returns the dry run that selects a group's dead runs and no others; None without any."""
        chosen = ("--handler", found.group.handler, "--error-group", found.group.id, *self.filters)
        return self.call.program.command("replay", *chosen) if found.dead else None

    def replay_of_class(self, found: Failures) -> Command | None:
        """Returns the dry run of the dead runs of a handler and error class.

        None unless several groups have the line of this one, and differ in their messages only.
        """
        handler, kind, line, *_ = found.group
        alike = [each for each in self.groups.groups.values() if each.group[:3] == found.group[:3]]
        if len(alike) < 2 or not (kind and line) or not any(each.dead for each in alike):
            return None
        chosen = ("--handler", handler, "--error-class", kind, *self.filters)
        return self.call.program.command("replay", *chosen)


def _options(wanted: Wanted) -> tuple[str, ...]:
    """Returns the filters of the groups as options of `replay`."""
    options = {
        "--source": wanted.source,
        "--type": wanted.type,
        "--tenant": wanted.tenant,
        "--since": iso(wanted.since),
        "--until": iso(wanted.until),
    }
    return tuple(word for name, value in options.items() if value for word in (name, value))


def _failed(ledger: Ledger, wanted: Wanted, status: Status | None) -> Iterator[Run]:
    """Yields the failing runs, then the dead ones, page by page.

    A run that dies meanwhile is in both indexes; it is yielded once if it is among the first 10,000
    failing ones.
    """
    failing: set[Key] = set()
    if status in {None, Status.FAILED}:
        for run in ledger.due_runs(selects=wanted.selects):
            if run.status is Status.FAILED and wanted.runs(run):
                if len(failing) < REMEMBERED:
                    failing.add(key_of_run(run))
                yield run
    if status in {None, Status.DEAD_LETTER}:
        low = DEAD_FROM if wanted.since is None else dead_due_at(wanted.since + RUN_LIFE)
        dead = ledger.dead_runs(low=low, selects=wanted.selects)
        rows = (run for _, run in dead if run is not None and wanted.runs(run))
        yield from (run for run in rows if key_of_run(run) not in failing)


def _object(advice: Advice, found: Failures) -> dict[str, Any]:
    group = found.group
    source, event_id = found.example
    replay, of_class = advice.replay(found), advice.replay_of_class(found)
    return {
        "count": found.count,
        "dead": found.dead,
        "group": group.id,
        "handler": group.handler,
        "error_class": group.error_class or None,
        "error_line": group.error_line or None,
        "message": group.message,
        "first_at": iso(found.first),
        "last_at": iso(found.last),
        "example": {"source": source, "event_id": event_id},
        "inspect": str(advice.inspect(found)),
        "replay": str(replay) if replay else None,
        "replay_of_class": str(of_class) if of_class else None,
    }


def _print(call: Invocation, advice: Advice, found: Failures) -> None:
    """Prints `68 x KeyError at functions/handlers/erp.py:22 (shop.book)`, then the details."""
    group, now, output = found.group, call.clock.now(), call.output
    where = f" at {group.error_line}" if group.error_line else ""
    output.text(f"{found.count} x {group.error_class or 'error'}{where} ({group.handler})")
    retried = found.count - found.dead
    parts = [f"{found.dead} dead" if found.dead else "", f"{retried} retried" if retried else ""]
    output.labelled("message", [found.text])
    if found.first is not None and found.last is not None:
        seen = f"first {relative(found.first, now)}, last {relative(found.last, now)}"
        output.labelled("seen", [f"{seen}; {', '.join(filter(None, parts))}"])
    output.labelled("example", [advice.inspect(found)])
    if replay := advice.replay(found):
        output.labelled("replay", [replay])
    if of_class := advice.replay_of_class(found):
        # Other groups have the same line: their messages differ, and the cause does not.
        output.labelled("or all", [f"every {group.error_class} of {group.handler}:", of_class])
    output.line()


def _note(call: Invocation, groups: FailureGroups, shown: list[Failures]) -> None:
    runs = sum(each.count for each in groups.groups.values()) + groups.others
    if not runs:
        call.output.note("No failing or dead runs found.")
        return
    rest = runs - sum(each.count for each in shown)
    more = f" The other groups have {counted(rest, 'run')}: see more with --limit." if rest else ""
    told = f"{counted(runs, 'run')} in {counted(len(groups.groups), 'group')}.{more}"
    next_ = "" if call.as_json else " `replay` lists the runs first, and sends them with --yes."
    call.output.note(f"{told}{next_}")
