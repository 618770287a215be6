"""One log line and one metric per delivery."""

from datetime import timedelta
from typing import Final

from aws_lambda_powertools import Logger, Metrics
from aws_lambda_powertools.metrics import MetricUnit

from webhook_inbox.domain.timestamps import MILLISECOND
from webhook_inbox.ingest.receipt import IngestOutcome, Receipt

_ERRORS: Final = {
    IngestOutcome.BROKEN,
    IngestOutcome.CONFLICT,
    IngestOutcome.CONTESTED,
    IngestOutcome.NO_SECRET,
    IngestOutcome.UNAVAILABLE,
}


def observe(logger: Logger, metrics: Metrics, receipt: Receipt, *, taken: timedelta) -> Receipt:
    """Logs and counts a receipt, and returns it; `taken` is the time until the answer."""
    # An unknown source makes no dimension: its name is arbitrary text of the caller.
    metrics.add_dimension(name="source", value=receipt.source or "none")
    metrics.add_dimension(name="outcome", value=str(receipt.outcome))
    metrics.add_metric(name="Deliveries", unit=MetricUnit.Count, value=1)
    if receipt.secret:
        metrics.add_metric(name="VerifiedWithPrevious", unit=MetricUnit.Count, value=1)
    write = logger.error if receipt.outcome in _ERRORS else logger.info
    write(
        f"delivery {receipt.outcome}",
        extra={
            "source": receipt.source,
            "outcome": str(receipt.outcome),
            "status": receipt.status,
            "event_id": receipt.event_id,
            "type": receipt.type,
            "reason": receipt.reason,
            "detail": receipt.detail,
            "handlers": list(receipt.handlers),
            "duration_ms": taken // MILLISECOND,
            "request_id": receipt.request_id,
            "trace_id": receipt.trace_id,
        },
    )
    return receipt
