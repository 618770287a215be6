"""A rejected delivery as people and programs see it: without what proves who sent it (G10)."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from webhook_inbox.domain.json_path import fields
from webhook_inbox.domain.provider import Provider
from webhook_inbox.ingest.events import GENERAL_HEADERS
from webhook_inbox.ingest.receipt import IngestOutcome
from webhook_inbox.ingest.rejected import RejectedDelivery
from webhook_inbox.ingest.release import ReleaseVerdict, ReverifiedDelivery
from webhookctl.display.output import GAP, Output, counted
from webhookctl.display.times import iso
from webhookctl.invocation import Invocation

UNSHOWN: Final = "(kept, not shown)"
COLUMNS: Final = ("SOURCE", "ID", "RECEIVED", "RESULT", "EVENT_ID", "WHY")


def kept_object(kept: RejectedDelivery, provider: Provider | None = None) -> dict[str, Any]:
    """Returns a kept delivery as JSON data, without its body; what is absent is null."""
    row = kept.row
    return {
        "id": kept.id,
        "source": kept.source,
        "received_at": iso(kept.received_at),
        "reason": str(kept.reason),
        "detail": row.get("detail") or None,
        "method": row["method"],
        "path": row["path"],
        "query_fields": [name for name, _ in fields(row["query"])],
        "headers": _headers(kept, provider),
        "fingerprint": row["fingerprint"],
        "body_size": row["body_size"],
        "expires_at": iso(kept.expires_at),
        "released_at": iso(kept.released_at),
        "released_by": row.get("released_by"),
        "released_as": row.get("released_as"),
        "released_event_id": kept.released_event_id or None,
    }


def print_kept(output: Output, kept: RejectedDelivery, provider: Provider | None) -> None:
    """Prints all that may be seen of a kept delivery."""
    shown = kept_object(kept, provider)
    headers: Mapping[str, str] = shown.pop("headers")
    shown["query_fields"] = ", ".join(shown["query_fields"])
    output.fields({name: value for name, value in shown.items() if value is not None})
    output.line()
    output.line("headers")
    output.fields(headers, indent=GAP)


def _headers(kept: RejectedDelivery, provider: Provider | None) -> dict[str, str]:
    """Returns the headers; the values of those alone that prove nothing."""
    harmless = GENERAL_HEADERS | {"host"}
    if provider is not None:
        harmless |= provider.kept_headers
        harmless -= provider.signature_headers | provider.token_headers
    headers: Mapping[str, str] = kept.row["headers"]
    return {k: v if k in harmless else UNSHOWN for k, v in sorted(headers.items())}


def print_checked(call: Invocation, results: Sequence[ReverifiedDelivery], limit: int) -> None:
    """Prints what kept deliveries came to, and what to do next."""
    if call.as_json:
        for result in results:
            call.output.json(_checked_object(result))
        return
    if not results:
        call.output.note("No such deliveries.")
        return
    call.output.table(COLUMNS, [_row(result) for result in results])
    counts = Counter(result.verdict for result in results)
    told = ", ".join(f"{count} {verdict}" for verdict, count in counts.items())
    call.output.line(f"{counted(len(results), 'delivery', 'deliveries')}: {told}.")
    for hint in _next_steps(results, counts):
        call.output.note(call.pasteable(hint))
    if len(results) == limit:
        call.output.note(f"The first {limit}; more with --limit, or narrow it down.")


def _checked_object(checked: ReverifiedDelivery) -> dict[str, Any]:
    event = checked.event
    return {
        "id": checked.rejected.id,
        "source": checked.rejected.source,
        "received_at": iso(checked.rejected.received_at),
        "result": str(checked.verdict),
        "reason": checked.reason or None,
        "detail": checked.detail or None,
        "event_id": checked.event_id or None,
        "type": event.type if event else None,
        "handlers": list(event.runs) if event else [],
    }


def _row(result: ReverifiedDelivery) -> tuple[object, ...]:
    why = ": ".join(filter(None, (result.reason, result.detail)))
    kept, event_id = result.rejected, result.event_id or "-"
    return (kept.source, kept.id, iso(kept.received_at), result.verdict, event_id, why or "-")


def _next_steps(
    results: Sequence[ReverifiedDelivery], counts: Counter[ReleaseVerdict | IngestOutcome]
) -> Iterator[str]:
    if counts[ReleaseVerdict.VALID]:
        yield "Let the valid ones in with `webhookctl rejected release`."
    if counts[IngestOutcome.ACCEPTED]:
        yield "See `webhookctl inbox list --since 10m` for what became of them."
    for result in results:
        if result.verdict is IngestOutcome.CONFLICT and result.event:
            event_id = result.event.event_id
            command = f"webhookctl inbox inspect {event_id}"
            yield f"{event_id} came before with other content: `{command}`."
    for source in sorted({result.rejected.source for result in results if result.reason}):
        yield (
            f"What still fails of {source} was not made with its secrets of today, or was not sent"
            " by its provider. Compare them, `webhookctl secrets set` the right one, and repeat."
        )
