"""One log line per message, which also has the metrics of its run and of a batch's items.

The keys that all lines of a message have, its handler's own included, are those of `correlated`.
"""

import logging
from collections.abc import Callable, Mapping
from datetime import datetime
from itertools import islice
from typing import Any, Final

from aws_lambda_powertools import Logger

from webhook_inbox.adapters.aws.embedded_metrics import MetricLines
from webhook_inbox.domain import metrics as catalogue
from webhook_inbox.domain.error_text import error_class, error_line, traceback_text
from webhook_inbox.domain.errors import ForeignMessage
from webhook_inbox.domain.manifest import SPLIT, Manifest
from webhook_inbox.domain.metrics import Duplicate, Metric
from webhook_inbox.domain.secrets import redacted
from webhook_inbox.domain.timestamps import MILLISECOND
from webhook_inbox.ingest.receipt import IngestOutcome
from webhook_inbox.queue.message import RunMessage
from webhook_inbox.queue.outcomes import Observed, RunOutcome, RunResult

_WARNINGS: Final = {RunOutcome.FAILED, RunOutcome.SUPERSEDED}
_ERRORS: Final = {RunOutcome.BROKEN, RunOutcome.DEAD, RunOutcome.FOREIGN, RunOutcome.UNAVAILABLE}
_OF_RUNS: Final = {
    RunOutcome.DONE,
    RunOutcome.SKIPPED,
    RunOutcome.HELD,
    RunOutcome.FAILED,
    RunOutcome.DEAD,
}
_ENDED: Final = {RunOutcome.DONE, RunOutcome.SKIPPED, RunOutcome.DEAD}
_OF_ITEMS: Final[Mapping[str, Metric]] = {
    IngestOutcome.HELD: catalogue.HELD_IDENTICAL,
    IngestOutcome.UNREADABLE: catalogue.HELD_UNCERTAIN,
    IngestOutcome.CONTRADICTED: catalogue.HELD_UNCERTAIN,
    IngestOutcome.CONFLICT: catalogue.CONFLICTS,
}
# An error's text may hold a whole body, and CloudWatch drops a log event that is too long.
TRACEBACK_LIMIT: Final = 16_000
# A run may have any number of effects.
EFFECTS_SHOWN: Final = 100


def observe(
    logger: Logger,
    result: RunResult,
    *,
    redact: Callable[[str], str],
    metrics: Callable[[Mapping[str, Any]], Mapping[str, Any]],
) -> None:
    """Logs a result, with the traceback of a handler's error.

    Args:
        logger: writes the line.
        result: of a message.
        redact: removes secrets from a text (G10).
        metrics: returns further fields of the line, its metrics, for those that it has.
    """
    outcome = str(result.outcome)
    for what in result.degraded:
        logger.warning("a check was skipped: the ledger did not answer", extra={"what": what})
    level, write = logging.INFO, logger.info
    if result.outcome in _WARNINGS:
        level, write = logging.WARNING, logger.warning
    if result.outcome in _ERRORS:
        level, write = logging.ERROR, logger.error
    fields = _fields(result, lambda text: result.hide(redact(text)))
    # A line below the logger's level is not written.
    told = metrics(fields) if level >= logger.log_level else {}
    write(f"message {outcome}", extra={**fields, **told})


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
        **({"reason": result.detail} if result.detail else {}),
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


def measure(metrics: MetricLines, result: RunResult, manifest: Manifest, *, now: datetime) -> None:
    """Counts a result, with the items of a batch; `now` is when its run ended."""
    if result.outcome in _OF_RUNS:
        name = result.reference.handler if result.reference else ""
        known = name == SPLIT or manifest.handler(name) is not None
        # A queue message may have any text as its handler's name.
        handler = name if known else catalogue.NONE
        metrics.add(catalogue.RUNS, handler=handler, outcome=str(result.outcome))
    if result.outcome in _ENDED:
        _measure_end(metrics, result, now)
    if result.doubtful:
        metrics.add(catalogue.EFFECTS_IN_DOUBT)
    if result.page:
        metrics.add(catalogue.DESTINATION_REFUSALS)
    for _ in result.degraded:
        metrics.add(catalogue.DEGRADED)
    _measure_items(metrics, result, manifest)


def _measure_end(metrics: MetricLines, result: RunResult, now: datetime) -> None:
    dead = result.outcome is RunOutcome.DEAD
    metrics.add(catalogue.ATTEMPTS, result.attempt)
    if result.outcome is RunOutcome.DONE and result.received_at is not None:
        metrics.add(catalogue.RECEIPT_TO_DONE, max((now - result.received_at).total_seconds(), 0))
    if dead and result.deaths >= catalogue.AGAIN:
        metrics.add(catalogue.DEAD_AGAIN)
    if result.replayed:
        metrics.add(catalogue.REPLAYED_DEAD if dead else catalogue.REPLAYED_DONE)


def _measure_items(metrics: MetricLines, result: RunResult, manifest: Manifest) -> None:
    source = result.reference.source if result.reference else ""
    for outcome, number in result.items.items():
        if outcome == IngestOutcome.ACCEPTED:
            known = source if source in manifest.sources else catalogue.NONE
            metrics.add(catalogue.ACCEPTED, number, source=known)
        elif outcome == IngestOutcome.REPLAYED:
            metrics.add(catalogue.DUPLICATES, number, kind=str(Duplicate.ATTACK))
        elif outcome in _OF_ITEMS:
            metrics.add(_OF_ITEMS[outcome], number)


def _caused(error: BaseException | None, redact: Callable[[str], str]) -> dict[str, str]:
    # Not by exc_info: the formatter would write the error's text as it is.
    if error is None:
        return {}
    text = redact(traceback_text(error))
    return {
        "error_class": error_class(error),
        "error_line": error_line(error),
        "exception_name": type(error).__name__,
        "exception": text[-TRACEBACK_LIMIT:],
    }
