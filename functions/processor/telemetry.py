"""One log line and one metric a message, and one metric for each outcome of a batch's items.

The keys that all lines of a message have, its handler's own included, are those of `correlated`.
"""

from collections.abc import Callable
from itertools import islice
from traceback import format_exception
from typing import Any, Final

from aws_lambda_powertools import Logger, Metrics
from aws_lambda_powertools.metrics import MetricUnit, single_metric

from webhook_inbox.domain.error_text import error_class, error_line
from webhook_inbox.domain.errors import ForeignMessage
from webhook_inbox.domain.secrets import redacted
from webhook_inbox.domain.timestamps import MILLISECOND
from webhook_inbox.queue.message import RunMessage
from webhook_inbox.queue.outcomes import Observed, RunOutcome, RunResult

_WARNINGS: Final = {RunOutcome.FAILED, RunOutcome.SUPERSEDED}
_ERRORS: Final = {
    RunOutcome.BROKEN,
    RunOutcome.DEAD,
    RunOutcome.FOREIGN,
    RunOutcome.UNAVAILABLE,
}


# An error's text may hold a whole body, and CloudWatch drops a log event that is too long.
TRACEBACK_LIMIT: Final = 16_000
# A run may have any number of effects.
EFFECTS_SHOWN: Final = 100


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
    write(f"message {outcome}", extra=_fields(result, redact))


def correlated(body: str) -> dict[str, str]:
    """Returns the keys by which the log lines of a message are found; {} for a foreign one."""
    try:
        run = RunMessage.decode(body)
    except ForeignMessage:
        return {}
    return {"source": run.source, "event_id": run.event_id, "handler": run.handler}


def _fields(result: RunResult, redact: Callable[[str], str]) -> dict[str, Any]:
    reference = result.reference
    return {
        "outcome": str(result.outcome),
        "handler": reference.handler if reference else "none",
        "source": reference.source if reference else "",
        "event_id": reference.event_id if reference else "",
        "generation": reference.generation if reference else 0,
        "attempt": result.attempt,
        "reason": result.detail,
        **({"due": result.due.isoformat()} if result.due else {}),
        **({"items": dict(result.items)} if result.items else {}),
        **(_observed(result.observed, redact) if result.observed else {}),
        **_caused(result.error, redact),
    }


def _observed(seen: Observed, redact: Callable[[str], str]) -> dict[str, Any]:
    took = {} if seen.taken is None else {"duration_ms": seen.taken // MILLISECOND}
    effects = dict(islice(seen.effects.items(), EFFECTS_SHOWN))
    return {
        "type": seen.type,
        "trace_id": seen.trace.id,
        "span_id": seen.trace.span,
        **took,
        **({"effects": redacted(effects, redact)} if effects else {}),
    }


def _count(metrics: Metrics, name: str, value: int, **dimensions: str) -> None:
    # A batch may have several handlers' messages, and each has dimensions of its own.
    with single_metric(
        name=name, unit=MetricUnit.Count, value=value, namespace=metrics.namespace
    ) as metric:
        for dimension, of in dimensions.items():
            metric.add_dimension(name=dimension, value=of)


def _caused(error: BaseException | None, redact: Callable[[str], str]) -> dict[str, str]:
    # Not by exc_info: the formatter would write the error's text as it is.
    if error is None:
        return {}
    text = redact("".join(format_exception(error)))
    return {
        "error_class": error_class(error),
        "error_line": error_line(error),
        "exception_name": type(error).__name__,
        "exception": text[-TRACEBACK_LIMIT:],
    }
