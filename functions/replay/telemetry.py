"""One log line and one line of metrics per page of a replay."""

from typing import Any

from aws_lambda_powertools import Logger

from webhook_inbox.adapters.aws.embedded_metrics import MetricLines
from webhook_inbox.domain import metrics as catalogue
from webhook_inbox.replay.report import ReplayOutcome, ReplayReport
from webhook_inbox.replay.request import ReplayRequest


def measure(metrics: MetricLines, report: ReplayReport) -> None:
    """Counts the runs that a replay sent."""
    replayed = report.counts.get(ReplayOutcome.REPLAYED, 0)
    if replayed:
        metrics.add(catalogue.REPLAYED_RUNS, replayed)
    if report.failed:
        metrics.add(catalogue.REPLAY_INTERRUPTED)


def observe(logger: Logger, request: ReplayRequest, report: ReplayReport) -> dict[str, Any]:
    """Logs a replay, and returns its report as JSON data."""
    data = report.to_data()
    asked = request.model_dump(mode="json", exclude_none=True)
    write = logger.error if report.failed else logger.info
    extra = {"request": asked, "counts": data["counts"], "failed": report.failed}
    write("replay", extra=extra)
    return data
