"""Prints an event for people: status, course, reasons and next action first, then the details."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from webhook_inbox.client.event_state import BatchItems, EventDetails, EventRun
from webhook_inbox.client.history import Happening
from webhook_inbox.client.suggestions import Command
from webhook_inbox.client.times import iso, relative, span, spelled
from webhook_inbox.domain.model import Attempt, Run, StoredEvent
from webhook_inbox.domain.printable import counted, cut
from webhook_inbox.domain.trace import Trace
from webhookctl.display.history import action_line
from webhookctl.display.output import Output
from webhookctl.display.runs import approval_line, effect_line, hold_lines, wait_line
from webhookctl.display.table import GAP

# Characters of an attempt's error without --verbose; the run's own error is complete.
ERROR_SHOWN: Final = 120


@dataclass(frozen=True, slots=True)
class Inspection:
    """An event and what `inbox inspect` says of it.

    Attributes:
        details: the event.
        see_body: the command that shows the body.
        now: the present time.
        logs: the commands that show the attempts' log lines, or where they are.
        verbose: whether to show fingerprints, generations, leases and workers.
    """

    details: EventDetails
    see_body: Command
    now: datetime
    logs: Sequence[str] = ()
    verbose: bool = False


def print_event(output: Output, shown: Inspection) -> None:
    """Prints an event."""
    details, event, now = shown.details, shown.details.event, shown.now
    output.labelled("status", [str(details.status)])
    output.labelled("event", [event.event_id])
    at = f"{relative(event.received_at, now)} ({spelled(event.received_at)})"
    output.labelled("received", [f"{at} from {_origin(shown)}"])
    output.labelled("happened", [_course(each, now) for each in details.runs])
    output.labelled("why", _reasons(details.runs))
    output.labelled("next", details.next_action)
    output.labelled("body", [shown.see_body])
    output.labelled("logs", shown.logs)
    if shown.verbose:
        output.line()
        output.fields(_hidden(event))
    if details.history[""]:
        output.line()
        output.line("the event")
        _print_history(output, shown, "")
    for each in details.runs:
        if each.run is not None:
            _print_run(output, shown, each, each.run)
    for conflict in details.conflicts:
        output.line()
        output.line(str(conflict))


def _origin(shown: Inspection) -> str:
    """Returns `stripe, type invoice.paid`, with the provider, agent and first event if any."""
    event, provided_by = shown.details.event, shown.details.provider
    provider = f" (provider {provided_by})" if provided_by != event.source else ""
    agent = f", agent {event.agent}" if event.agent else ""
    tenant = f", tenant {event.tenant}" if event.tenant else ""
    doubt = f" ({event.doubt})" if event.doubt else ""
    first = f", body identical to {event.identical_to}" if event.identical_to else ""
    erased = f", payload erased on {event.erased_at:%Y-%m-%d}" if event.erased_at else ""
    return f"{event.source}{provider}, type {event.type}{doubt}{agent}{tenant}{first}{erased}"


def _course(each: EventRun, now: datetime) -> str:
    """Returns `stripe.book: failed 12 s ago after 2 attempts`."""
    run = each.run
    if run is None:
        return f"{each.handler}: accepted, not started"
    at = run.done_at or run.last_at
    when = f" {relative(at, now)}" if at else ""
    attempts = f" after {counted(run.attempt_count, 'attempt')}" if run.attempt_count else ""
    items = f", {_items(each.items)}" if each.items else ""
    return f"{each.handler}: {run.status}{when}{attempts}{items}"


def _reasons(runs: Sequence[EventRun]) -> Iterator[str]:
    stated = [each for each in runs if each.reason]
    for each in stated:
        subject = f"{each.handler}: " if len(stated) > 1 else ""
        if each.error_line:
            yield f"{subject}{each.error_line}"
            yield each.reason
        else:
            yield f"{subject}{each.reason}"


def _hidden(event: StoredEvent) -> Mapping[str, object]:
    return {
        "received_at": iso(event.received_at),
        "dedupe_key": event.event_id,
        "fingerprint": event.fingerprint,
        "trace_id": Trace.of(event.headers, source=event.source, event_id=event.event_id).id,
    }


def _print_run(output: Output, shown: Inspection, each: EventRun, run: Run) -> None:
    now = shown.now
    output.line()
    output.line(f"run {run.handler}")
    if shown.verbose:
        lease = {"claimed_by": run.claimed_by, "claimed_until": _lease(run.claimed_until, now)}
        times = {"next_attempt_at": _exact(run.next_attempt_at, now)}
        ended = {"done_at": _exact(run.done_at, now), "code_version": run.code_version}
        output.fields({"generation": run.generation, **lease, **times, **ended}, indent=GAP)
    _print_history(output, shown, run.handler)
    _print_list(output, "held", hold_lines(each.hold))
    _print_list(output, "approvals", map(approval_line, each.approvals))
    _print_list(output, "effects", map(effect_line, each.effects))
    _print_list(output, "waits", map(wait_line, each.waits))


def _print_history(output: Output, shown: Inspection, handler: str) -> None:
    history = shown.details.history.get(handler, ())
    _print_list(output, "history", (_happening_line(each, shown) for each in history))


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


def _items(items: BatchItems) -> str:
    """Returns `items: 9 accepted, 1 ignored, of 12`."""
    counts = ", ".join(f"{count} {outcome}" for outcome, count in items.counts.items())
    return f"items: {counts}, of {items.of}"


def _exact(value: datetime | None, now: datetime) -> str | None:
    return None if value is None else f"{iso(value)} ({relative(value, now)})"


def _lease(until: datetime | None, now: datetime) -> str | None:
    if until is None:
        return None
    words = f"in {span(until - now)}" if until > now else f"expired {span(now - until)} ago"
    return f"{iso(until)} ({words})"
