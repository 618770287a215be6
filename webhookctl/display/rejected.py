"""Formats rejected deliveries, without signatures and tokens (G10)."""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final

from webhook_inbox.client.rejected import FullMinutes, Rejection, ReleaseOutcome, ReleaseResult
from webhook_inbox.client.suggestions import Program
from webhook_inbox.domain.printable import counted
from webhookctl.display.json_object import json_object
from webhookctl.display.output import Output
from webhookctl.display.table import GAP, Column, Fit
from webhookctl.invocation import Invocation

COLUMNS: Final = (
    Column("SOURCE", Fit.NAME),
    Column("ID", Fit.ID),
    Column("RECEIVED"),
    Column("RESULT"),
    Column("EVENT_ID", Fit.ID),
    Column("WHY", Fit.NOTE),
)
MINUTES_SHOWN: Final = 3


def print_rejected(output: Output, rejection: Rejection) -> None:
    """Prints a rejected delivery without its secrets."""
    shown = json_object(rejection)
    headers = shown.pop("headers")
    shown["query_fields"] = ", ".join(rejection.query_fields)
    output.fields({name: value for name, value in shown.items() if value is not None})
    output.line()
    output.line("headers")
    output.fields(headers, indent=GAP)


def full_minutes_note(full: FullMinutes) -> str:
    """Returns which deliveries a list lacks, since their minutes reached the limit."""
    times = ", ".join(f"{minute:%Y-%m-%dT%H:%MZ}" for minute in full.minutes[:MINUTES_SHOWN])
    more = len(full.minutes) - MINUTES_SHOWN
    others = f" and {counted(more, 'earlier minute')}" if more > 0 else ""
    return (
        f"{full.source} reached the limit of {full.limit} stored deliveries in the minute"
        f" {times}{others}: further ones may have been rejected without being stored."
    )


def print_results(call: Invocation, results: Sequence[ReleaseResult], limit: int) -> None:
    """Prints the results and the next steps."""
    if call.as_json:
        call.output.results(results)
        return
    if not results:
        call.output.note("No rejected deliveries found.")
        return
    call.output.table(COLUMNS, [_row(result) for result in results], now=call.clock.now())
    counts = Counter(each.result for each in results)
    summary = ", ".join(f"{count} {result}" for result, count in counts.items())
    call.output.line(f"{counted(len(results), 'delivery', 'deliveries')}: {summary}.")
    for hint in _next_steps(call.program, results, counts):
        call.output.note(hint)
    if len(results) == limit:
        call.output.note(f"Showing the first {limit}; see more with --limit, or filter.")


def _row(each: ReleaseResult) -> tuple[object, ...]:
    event_id = each.event_id or "-"
    return (each.source, each.id, each.received_at, each.result, event_id, why_text(each))


def why_text(each: ReleaseResult) -> str:
    """Returns why a delivery is invalid, "" if it is not."""
    return ": ".join(filter(None, (each.reason, each.detail)))


def _next_steps(
    program: Program,
    results: Sequence[ReleaseResult],
    counts: Counter[ReleaseOutcome],
) -> Iterator[str]:
    if counts[ReleaseOutcome.VALID]:
        yield "Add --yes to accept the valid ones."
    if counts[ReleaseOutcome.ACCEPTED]:
        yield f"Follow them with `{program.command('inbox list', '--since', '10m')}`."
    if counts[ReleaseOutcome.HELD]:
        decide = program.command("hold list", "--subject", "identical-body")
        yield f"The held ones have the body of an earlier event: decide with `{decide}`."
    for doubt in (ReleaseOutcome.UNREADABLE, ReleaseOutcome.CONTRADICTED):
        if counts[doubt]:
            decide = program.command("hold list", "--subject", str(doubt))
            yield f"The type of the {doubt} ones is not certain: decide with `{decide}`."
    for result in results:
        if result.result is ReleaseOutcome.CONFLICT:
            inspect = program.command("inbox inspect", argument=result.event_id)
            yield f"{result.event_id} was received before with different content: `{inspect}`."
    failed = [result for result in results if result.reason]
    unnamed = {each.source for each in failed if "received: " in (each.detail or "")}
    for source in sorted(unnamed):
        yield (
            f"Deliveries of {source} lack a header that its scheme reads. If it was sent under"
            " another name, correct the name in inbox.toml, repeat, and deploy."
        )
    for source in sorted({result.source for result in failed} - unnamed):
        yield (
            f"Deliveries of {source} that still fail were not signed with its current secrets, or"
            " not sent by its provider. Compare the secrets, correct them with"
            f" `{program.command('secrets set')}`, and repeat."
        )
