"""Prints an event for people: status, course, reasons and next action first, then the details."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from webhook_inbox.client.suggestions import Command
from webhook_inbox.client.times import iso, relative, span, spelled
from webhook_inbox.domain.model import Attempt, Overview, Run, StoredEvent
from webhook_inbox.domain.printable import cut
from webhook_inbox.domain.trace import Trace
from webhookctl.display.event import names_of
from webhookctl.display.history import Happening, action_line, history_of
from webhookctl.display.output import Output, counted
from webhookctl.display.runs import (
    approval_line,
    approvals,
    effect_line,
    hold_lines,
    wait_line,
    waits_of,
)
from webhookctl.display.table import GAP
from webhookctl.explain.effects import effects_of
from webhookctl.explain.next_action import Steps
from webhookctl.explain.reason import line_of, reason_of

# Characters of an attempt's error without --verbose; the run's own error is complete.
ERROR_SHOWN: Final = 120


@dataclass(frozen=True, slots=True)
class Inspection:
    """An event and what `inbox inspect` says of it.

    Attributes:
        overview: the event.
        provider: its provider.
        steps: the next action.
        see_body: the command that shows the body.
        now: the present time.
        logs: the commands that show the attempts' log lines, or where they are.
        verbose: whether to show fingerprints, generations, leases and workers.
    """

    overview: Overview
    provider: str
    steps: Steps
    see_body: Command
    now: datetime
    logs: Sequence[str] = ()
    verbose: bool = False


def print_event(output: Output, shown: Inspection) -> None:
    """Prints an event."""
    overview, event, now = shown.overview, shown.overview.event, shown.now
    output.labelled("status", [str(overview.status)])
    output.labelled("event", [event.event_id])
    at = f"{relative(event.received_at, now)} ({spelled(event.received_at)})"
    output.labelled("received", [f"{at} from {_origin(shown)}"])
    by_name = {run.handler: run for run in overview.runs}
    names = names_of(overview)
    output.labelled("happened", [_course(name, by_name.get(name), now) for name in names])
    output.labelled("why", _reasons(overview.runs))
    output.labelled("next", shown.steps)
    output.labelled("body", [shown.see_body])
    output.labelled("logs", shown.logs)
    if shown.verbose:
        output.line()
        output.fields(_hidden(event))
    if history_of(overview):
        output.line()
        output.line("the event")
        _print_history(output, shown, "")
    for run in overview.runs:
        _print_run(output, shown, run)


def _origin(shown: Inspection) -> str:
    """Returns `stripe, type invoice.paid`, with the provider, agent and first event if any."""
    event = shown.overview.event
    provider = f" (provider {shown.provider})" if shown.provider != event.source else ""
    agent = f", agent {event.agent}" if event.agent else ""
    tenant = f", tenant {event.tenant}" if event.tenant else ""
    doubt = f" ({event.doubt})" if event.doubt else ""
    first = f", body identical to {event.identical_to}" if event.identical_to else ""
    erased = f", payload erased on {event.erased_at:%Y-%m-%d}" if event.erased_at else ""
    return f"{event.source}{provider}, type {event.type}{doubt}{agent}{tenant}{first}{erased}"


def _course(name: str, run: Run | None, now: datetime) -> str:
    """Returns `stripe.book: failed 12 s ago after 2 attempts`."""
    if run is None:
        return f"{name}: accepted, not started"
    at = run.done_at or run.last_at
    when = f" {relative(at, now)}" if at else ""
    attempts = f" after {counted(run.attempt_count, 'attempt')}" if run.attempt_count else ""
    items = f", {_items(run)}" if run.progress else ""
    return f"{name}: {run.status}{when}{attempts}{items}"


def _reasons(runs: Iterable[Run]) -> Iterator[str]:
    told = [run for run in runs if reason_of(run)]
    for run in told:
        subject = f"{run.handler}: " if len(told) > 1 else ""
        if line := line_of(run):
            yield f"{subject}{line}"
            yield reason_of(run)
        else:
            yield f"{subject}{reason_of(run)}"


def _hidden(event: StoredEvent) -> Mapping[str, object]:
    return {
        "received_at": iso(event.received_at),
        "dedupe_key": event.event_id,
        "fingerprint": event.fingerprint,
        "trace_id": Trace.of(event.headers, source=event.source, event_id=event.event_id).id,
    }


def _print_run(output: Output, shown: Inspection, run: Run) -> None:
    overview, now = shown.overview, shown.now
    output.line()
    output.line(f"run {run.handler}")
    if shown.verbose:
        lease = {"claimed_by": run.claimed_by, "claimed_until": _lease(run.claimed_until, now)}
        times = {"next_attempt_at": _exact(run.next_attempt_at, now)}
        ended = {"done_at": _exact(run.done_at, now), "code_version": run.code_version}
        output.fields({"generation": run.generation, **lease, **times, **ended}, indent=GAP)
    _print_history(output, shown, run.handler)
    _print_list(output, "held", hold_lines(run))
    _print_list(output, "approvals", map(approval_line, approvals(run).items()))
    _print_list(output, "effects", map(effect_line, effects_of(overview, run.handler, now=now)))
    _print_list(output, "waits", map(wait_line, waits_of(overview, run.handler)))


def _print_history(output: Output, shown: Inspection, handler: str) -> None:
    happenings = history_of(shown.overview, handler)
    _print_list(output, "history", (_happening_line(each, shown) for each in happenings))


def _happening_line(each: Happening, shown: Inspection) -> str:
    if isinstance(each, Attempt):
        return _attempt_line(each, shown)
    at = iso(each.at) if shown.verbose else relative(each.at, shown.now)
    return f"-  {at}  {action_line(each)}"


def _print_list(output: Output, title: str, lines: Iterator[str]) -> None:
    shown = list(lines)
    if shown:
        output.line(f"{GAP}{title}")
    for line in shown:
        output.text(line, indent=GAP * 2, hanging=GAP * 2)


def _attempt_line(attempt: Attempt, shown: Inspection) -> str:
    took = (attempt.ended_at - attempt.started_at).total_seconds()
    if not shown.verbose:
        told = f"{relative(attempt.started_at, shown.now)}  {attempt.outcome} after {took:.3f} s"
        error = f"  {cut(attempt.error, ERROR_SHOWN)}" if attempt.error else ""
        return f"{attempt.number}  {told}{error}"
    worker = f"  by {attempt.worker}" if attempt.worker else ""
    worker += f"  code {attempt.code_version}" if attempt.code_version else ""
    told = f"{iso(attempt.started_at)}  {attempt.outcome} after {took:.3f} s{worker}"
    return f"{attempt.number}  {told}" + (f"  {attempt.error}" if attempt.error else "")


def _items(run: Run) -> str:
    """Returns `items: 9 accepted, 1 ignored, of 12`."""
    counts = ", ".join(f"{count} {outcome}" for outcome, count in run.progress["counts"].items())
    return f"items: {counts}, of {run.progress['of']}"


def _exact(value: datetime | None, now: datetime) -> str | None:
    return None if value is None else f"{iso(value)} ({relative(value, now)})"


def _lease(until: datetime | None, now: datetime) -> str | None:
    if until is None:
        return None
    words = f"in {span(until - now)}" if until > now else f"expired {span(now - until)} ago"
    return f"{iso(until)} ({words})"
