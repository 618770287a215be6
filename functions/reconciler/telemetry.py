"""One log line and one line of metrics per pass."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Any, Final

from aws_lambda_powertools import Logger

from webhook_inbox.adapters.aws.embedded_metrics import MetricLines
from webhook_inbox.destinations.states import destination_states
from webhook_inbox.domain import metrics as catalogue
from webhook_inbox.domain.errors import Unavailable
from webhook_inbox.domain.manifest import Manifest
from webhook_inbox.domain.ports import Clock, Table
from webhook_inbox.queue.outcomes import RunOutcome
from webhook_inbox.reconciler.report import Action, ReconcilerReport

_COUNTED: Final = {
    Action.ADOPTED: catalogue.DEGRADED,
    Action.RESENT: catalogue.DEGRADED,
    Action.WATCHED: catalogue.DEGRADED,
    Action.FAILED: catalogue.DEGRADED,
    Action.LOST: catalogue.RUNS_GIVEN_UP,
    Action.EXPIRED: catalogue.RUNS_GIVEN_UP,
    Action.LAST_CALL: catalogue.RUNS_NEAR_EXPIRY,
}


@contextmanager
def counted(metrics: MetricLines, clock: Clock) -> Iterator[None]:
    """Counts a pass that ends by an error, whose report is lost."""
    try:
        yield
    except Exception:
        metrics.add(catalogue.DEGRADED)
        metrics.flush(clock.now())
        raise


def measure(
    metrics: MetricLines, report: ReconcilerReport, manifest: Manifest, *, now: datetime
) -> None:
    """Counts a pass, and adds the gauges."""
    if not report.complete:
        metrics.add(catalogue.DEGRADED)
    for action, number in report.counts.items():
        if action in _COUNTED:
            metrics.add(_COUNTED[Action(action)], number)
    for run in report.dead:
        handler = run.handler if manifest.handler(run.handler) else catalogue.NONE
        metrics.add(catalogue.RUNS, handler=handler, outcome=str(RunOutcome.DEAD))
        if run.deaths + 1 >= catalogue.AGAIN:
            metrics.add(catalogue.DEAD_AGAIN)
        if run.replays:
            metrics.add(catalogue.REPLAYED_DEAD)
    if report.oldest_due:
        metrics.add(catalogue.OLDEST_DUE, round(report.oldest_due.total_seconds(), 3))
    if report.oldest_dead_letter is not None:
        age = now - report.oldest_dead_letter
        metrics.add(catalogue.OLDEST_DEAD_LETTER, max(round(age.total_seconds(), 3), 0.0))


def measure_destinations(
    metrics: MetricLines, table: Table, manifest: Manifest, *, now: datetime
) -> None:
    """Adds the gauges of the destinations that are down or have a queue."""
    try:
        states = destination_states(table, manifest.destinations.values(), now=now)
    except Unavailable:
        return  # They are missing for a minute; the pass has reported the outage.
    for state in states:
        if state.is_open:
            metrics.add(catalogue.CIRCUIT_OPEN, destination=state.name)
        if state.queue:
            wait = round(state.queue.total_seconds(), 3)
            metrics.add(catalogue.LIMITER_QUEUE, wait, destination=state.name)


def observe(logger: Logger, report: ReconcilerReport) -> dict[str, Any]:
    """Logs a pass, and returns its report as JSON data."""
    data = report.to_data()
    quiet = report.complete and not report.errors
    write = logger.info if quiet else logger.warning
    write("reconciler pass", extra={"report": data})
    return data
