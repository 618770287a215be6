"""One log line per page of a replay, and a metric per outcome."""

from typing import Any

from aws_lambda_powertools import Logger, Metrics
from aws_lambda_powertools.metrics import MetricUnit

from webhook_inbox.replay.report import ReplayReport
from webhook_inbox.replay.request import ReplayRequest


def observe(
    logger: Logger, metrics: Metrics, request: ReplayRequest, report: ReplayReport
) -> dict[str, Any]:
    """Logs and counts a replay, and returns its report as JSON data."""
    data = report.to_data()
    metrics.add_metric(name="ReplayMatched", unit=MetricUnit.Count, value=report.matched)
    # A dry run replays nothing, so its outcomes are not counted.
    for outcome, number in ({} if report.dry_run else report.counts).items():
        name = f"Replay{str(outcome).title().replace('_', '')}"
        metrics.add_metric(name=name, unit=MetricUnit.Count, value=number)
    if report.failed:
        metrics.add_metric(name="ReplayInterrupted", unit=MetricUnit.Count, value=1)
    metrics.flush_metrics()
    asked = request.model_dump(mode="json", exclude_none=True)
    write = logger.error if report.failed else logger.info
    extra = {"request": asked, "counts": data["counts"], "failed": report.failed}
    write("replay", extra=extra)
    return data
