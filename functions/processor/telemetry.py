"""One log line and one metric a message, and one metric for each outcome of a batch's items."""

from collections.abc import Callable
from traceback import format_exception
from typing import Final

from aws_lambda_powertools import Logger, Metrics
from aws_lambda_powertools.metrics import MetricUnit, single_metric

from webhook_inbox.queue.outcomes import RunOutcome, RunResult

_WARNINGS: Final = {RunOutcome.FAILED, RunOutcome.SUPERSEDED}
_ERRORS: Final = {
    RunOutcome.BROKEN,
    RunOutcome.DEAD,
    RunOutcome.FOREIGN,
    RunOutcome.UNAVAILABLE,
}


# An error's text may hold a whole body, and CloudWatch drops a log event that is too long.
TRACEBACK_LIMIT: Final = 16_000


def observe(
    logger: Logger,
    metrics: Metrics,
    lane: str,
    result: RunResult,
    *,
    redact: Callable[[str], str],
) -> None:
    """Logs and counts a result, with the traceback of a handler's error.

    `redact` removes secrets from a text (G10).
    """
    handler = result.reference.handler if result.reference else "none"
    reference = result.reference
    source = reference.source if reference else ""
    outcome = str(result.outcome)
    _count(metrics, "Messages", 1, lane=lane, handler=handler, outcome=outcome)
    for fate, items in result.items.items():
        _count(metrics, "Items", items, source=source, outcome=fate)
    for what in result.degraded:
        _count(metrics, "FailedOpen", 1, lane=lane)
        logger.warning("a check was skipped: the ledger did not answer", extra={"what": what})
    if result.page:
        # By lane, as its alarm: CloudWatch identifies a metric by all of its dimensions.
        _count(metrics, "Pages", 1, lane=lane)
    write = logger.warning if result.outcome in _WARNINGS else logger.info
    write = logger.error if result.outcome in _ERRORS else write
    write(
        f"message {outcome}",
        extra={
            "outcome": outcome,
            "handler": handler,
            "source": source,
            "event_id": reference.event_id if reference else "",
            "generation": reference.generation if reference else 0,
            "attempt": result.attempt,
            "detail": result.detail,
            **({"due": result.due.isoformat()} if result.due else {}),
            **({"items": dict(result.items)} if result.items else {}),
            **_traceback(result.error, redact),
        },
    )


def _count(metrics: Metrics, name: str, value: int, **dimensions: str) -> None:
    # A batch may have several handlers' messages, and each has dimensions of its own.
    with single_metric(
        name=name, unit=MetricUnit.Count, value=value, namespace=metrics.namespace
    ) as metric:
        for dimension, of in dimensions.items():
            metric.add_dimension(name=dimension, value=of)


def _traceback(error: BaseException | None, redact: Callable[[str], str]) -> dict[str, str]:
    # Not by exc_info: the formatter would write the error's text as it is.
    if error is None:
        return {}
    text = redact("".join(format_exception(error)))
    return {"exception_name": type(error).__name__, "exception": text[-TRACEBACK_LIMIT:]}
