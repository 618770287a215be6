"""Formats rejected deliveries, without signatures and tokens (G10)."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from webhook_inbox.client.suggestions import Program
from webhook_inbox.client.times import iso
from webhook_inbox.domain.json_path import fields
from webhook_inbox.domain.provider import Provider
from webhook_inbox.ingest.events import GENERAL_HEADERS
from webhook_inbox.ingest.receipt import IngestOutcome
from webhook_inbox.ingest.rejected import RejectedDelivery
from webhook_inbox.ingest.release import ReleaseVerdict, ReverifiedDelivery
from webhookctl.display.output import Output, counted
from webhookctl.display.table import GAP, Column, Fit
from webhookctl.invocation import Invocation

UNSHOWN: Final = "(stored, not shown)"
UNSTORED: Final = "(not stored)"
COLUMNS: Final = (
    Column("SOURCE", Fit.NAME),
    Column("ID", Fit.ID),
    Column("RECEIVED"),
    Column("RESULT"),
    Column("EVENT_ID", Fit.ID),
    Column("WHY", Fit.NOTE),
)


def rejected_object(delivery: RejectedDelivery, provider: Provider | None = None) -> dict[str, Any]:
    """Returns a rejected delivery as JSON data, without its body; absent values are null."""
    row = delivery.row
    return {
        "id": delivery.id,
        "source": delivery.source,
        "received_at": iso(delivery.received_at),
        "reason": str(delivery.reason),
        "detail": row.get("detail") or None,
        "method": row["method"],
        "path": row["path"],
        "query_fields": [name for name, _ in fields(row["query"])],
        "headers": _headers(delivery, provider),
        "fingerprint": row["fingerprint"],
        "body_size": row["body_size"],
        "expires_at": iso(delivery.expires_at),
        "released_at": iso(delivery.released_at),
        "released_by": row.get("released_by"),
        "released_as": row.get("released_as"),
        "released_event_id": delivery.released_event_id or None,
    }


def print_rejected(output: Output, delivery: RejectedDelivery, provider: Provider | None) -> None:
    """Prints a rejected delivery without its secrets."""
    shown = rejected_object(delivery, provider)
    headers: Mapping[str, str] = shown.pop("headers")
    shown["query_fields"] = ", ".join(shown["query_fields"])
    output.fields({name: value for name, value in shown.items() if value is not None})
    output.line()
    output.line("headers")
    output.fields(headers, indent=GAP)


def _headers(delivery: RejectedDelivery, provider: Provider | None) -> dict[str, str]:
    """Returns the headers; values that could authenticate a sender are masked."""
    harmless = GENERAL_HEADERS | {"host"}
    if provider is not None:
        harmless |= provider.kept_headers
        harmless -= provider.signature_headers | provider.token_headers
    row = delivery.row
    headers: Mapping[str, str] = row["headers"]
    stored = (
        headers.keys() | row.get("unread_headers", {}).keys() | row.get("unread_tokens", {}).keys()
    )
    names = sorted(stored | {*row.get("header_names", ())})
    shown = {name: UNSHOWN if name in stored else UNSTORED for name in names}
    return shown | {k: v for k, v in headers.items() if k in harmless}


def print_results(call: Invocation, results: Sequence[ReverifiedDelivery], limit: int) -> None:
    """Prints the verdicts and the next steps."""
    if call.as_json:
        for result in results:
            call.output.json(_result_object(result))
        return
    if not results:
        call.output.note("No rejected deliveries found.")
        return
    call.output.table(COLUMNS, [_row(result) for result in results], now=call.clock.now())
    counts = Counter(result.verdict for result in results)
    told = ", ".join(f"{count} {verdict}" for verdict, count in counts.items())
    call.output.line(f"{counted(len(results), 'delivery', 'deliveries')}: {told}.")
    for hint in _next_steps(call.program, results, counts):
        call.output.note(hint)
    if len(results) == limit:
        call.output.note(f"Showing the first {limit}; see more with --limit, or filter.")


def _result_object(result: ReverifiedDelivery) -> dict[str, Any]:
    event = result.event
    return {
        "id": result.rejected.id,
        "source": result.rejected.source,
        "received_at": iso(result.rejected.received_at),
        "result": str(result.verdict),
        "reason": result.reason or None,
        "detail": result.detail or None,
        "event_id": result.event_id or None,
        "type": event.type if event else None,
        "handlers": list(event.runs) if event else [],
    }


def _row(result: ReverifiedDelivery) -> tuple[object, ...]:
    why = ": ".join(filter(None, (result.reason, result.detail)))
    delivery, event_id = result.rejected, result.event_id or "-"
    return (delivery.source, delivery.id, delivery.received_at, result.verdict, event_id, why)


def _next_steps(
    program: Program,
    results: Sequence[ReverifiedDelivery],
    counts: Counter[ReleaseVerdict | IngestOutcome],
) -> Iterator[str]:
    if counts[ReleaseVerdict.VALID]:
        yield "Add --yes to accept the valid ones."
    if counts[IngestOutcome.ACCEPTED]:
        yield f"Follow them with `{program.command('inbox list', '--since', '10m')}`."
    if counts[IngestOutcome.HELD]:
        decide = program.command("hold list", "--subject", "identical-body")
        yield f"The held ones have the body of an earlier event: decide with `{decide}`."
    for doubt in (IngestOutcome.UNREADABLE, IngestOutcome.CONTRADICTED):
        if counts[doubt]:
            decide = program.command("hold list", "--subject", str(doubt))
            yield f"The type of the {doubt} ones is not certain: decide with `{decide}`."
    for result in results:
        if result.verdict is IngestOutcome.CONFLICT and result.event:
            event_id = result.event.event_id
            inspect = program.command("inbox inspect", argument=event_id)
            yield f"{event_id} was received before with different content: `{inspect}`."
    failed = [result for result in results if result.reason]
    unnamed = {each.rejected.source for each in failed if "received: " in each.detail}
    for source in sorted(unnamed):
        yield (
            f"Deliveries of {source} lack a header that its scheme reads. If it was sent under"
            " another name, correct the name in inbox.toml, repeat, and deploy."
        )
    for source in sorted({result.rejected.source for result in failed} - unnamed):
        yield (
            f"Deliveries of {source} that still fail were not signed with its current secrets, or"
            " not sent by its provider. Compare the secrets, correct them with"
            f" `{program.command('secrets set')}`, and repeat."
        )
