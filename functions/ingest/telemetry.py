"""One log line per delivery, which has its metrics as well."""

from datetime import datetime, timedelta
from typing import Any, Final

from ingest.log import JsonLog
from webhook_inbox.adapters.aws.embedded_metrics import MetricLines
from webhook_inbox.domain import metrics as catalogue
from webhook_inbox.domain.errors import Reason
from webhook_inbox.domain.manifest import SPLIT
from webhook_inbox.domain.timestamps import MILLISECOND
from webhook_inbox.ingest.receipt import IngestOutcome, Receipt

_ERRORS: Final = {
    IngestOutcome.BROKEN,
    IngestOutcome.CONFLICT,
    IngestOutcome.CONTESTED,
    IngestOutcome.KEY_UNAVAILABLE,
    IngestOutcome.NO_SECRET,
    IngestOutcome.UNCONFIRMED,
    IngestOutcome.UNAVAILABLE,
}
# Characters of a detail that are logged, of its begin and of its end. CloudWatch reads no metrics
# in a line above 1 MB.
DETAIL: Final = 8_000

_COUNTED: Final = {
    IngestOutcome.HELD: catalogue.HELD_IDENTICAL,
    IngestOutcome.UNREADABLE: catalogue.HELD_UNCERTAIN,
    IngestOutcome.CONTRADICTED: catalogue.HELD_UNCERTAIN,
    IngestOutcome.CONFLICT: catalogue.CONFLICTS,
    # Failures of the inbox itself, which page. Any sender can cause the other 5xx answers: by the
    # key that it names, or because a source has no secret.
    IngestOutcome.BROKEN: catalogue.INGEST_FAILURES,
    IngestOutcome.UNAVAILABLE: catalogue.INGEST_FAILURES,
}
_REASONS: Final = frozenset(map(str, Reason))


def measure(metrics: MetricLines, receipt: Receipt, *, taken: timedelta) -> None:
    """Counts a receipt; `taken` is the time until its answer."""
    metrics.add(catalogue.ACKNOWLEDGEMENT_TIME, max(taken / MILLISECOND, 0.0))
    # Ingest leaves the source of an unknown one empty: its name is arbitrary text of the caller.
    source = receipt.source or catalogue.NONE
    # A batch counts by its items, when it is split.
    if receipt.outcome is IngestOutcome.ACCEPTED and receipt.handlers != (SPLIT,):
        metrics.add(catalogue.ACCEPTED, source=source)
    if receipt.outcome in _COUNTED:
        metrics.add(_COUNTED[receipt.outcome])
    if receipt.duplicate is not None:
        metrics.add(catalogue.DUPLICATES, kind=str(receipt.duplicate))
    if receipt.reason in _REASONS:
        metrics.add(catalogue.REJECTED, reason=receipt.reason)
    if receipt.secret:
        metrics.add(catalogue.VERIFIED_WITH_PREVIOUS, source=source)


def observe(
    logger: JsonLog, receipt: Receipt, metrics: MetricLines, *, begun: datetime, taken: timedelta
) -> None:
    """Logs a receipt with its metrics; `taken` is the time until the answer."""
    write = logger.error if receipt.outcome in _ERRORS else logger.info
    fields: dict[str, Any] = {
        "source": receipt.source,
        "outcome": str(receipt.outcome),
        "status": receipt.status,
        "event_id": receipt.event_id,
        "type": receipt.type,
        "reason": receipt.reason,
        "detail": _shortened(receipt.detail),
        "duration_ms": taken // MILLISECOND,
        "request_id": receipt.request_id,
        "trace_id": receipt.trace_id,
    }
    measure(metrics, receipt, taken=taken)
    metrics_of_line = metrics.take(begun + taken, beside=fields)
    write(f"delivery {receipt.outcome}", extra={**fields, **metrics_of_line})


def _shortened(detail: str) -> str:
    """Returns a detail without its middle, if it is long; the text of an error is of any length."""
    return detail if len(detail) <= 2 * DETAIL else f"{detail[:DETAIL]} … {detail[-DETAIL:]}"
