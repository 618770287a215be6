"""One log line per pass, and a metric per action."""

from dataclasses import asdict
from typing import Any

from aws_lambda_powertools import Logger, Metrics
from aws_lambda_powertools.metrics import MetricUnit

from webhook_inbox.reconciler.report import ReconcilerReport


def observe(logger: Logger, metrics: Metrics, report: ReconcilerReport) -> dict[str, Any]:
    """Logs and counts a pass, and returns its report as JSON data."""
    data = asdict(report)
    metrics.add_metric(name="ReconcilerPasses", unit=MetricUnit.Count, value=1)
    if not report.complete:
        metrics.add_metric(name="ReconcilerIncomplete", unit=MetricUnit.Count, value=1)
    for action, number in report.counts.items():
        name = f"Reconciler{str(action).title().replace('_', '')}"
        metrics.add_metric(name=name, unit=MetricUnit.Count, value=number)
    metrics.flush_metrics()
    quiet = report.complete and not report.errors
    write = logger.info if quiet else logger.warning
    write("reconciler pass", extra={"report": data})
    return data
