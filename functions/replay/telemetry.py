"""One log line per run that a replay sends, and one with a line of metrics per page."""

from typing import Any

from aws_lambda_powertools import Logger

from webhook_inbox.adapters.aws.embedded_metrics import MetricLines
from webhook_inbox.domain import metrics as catalogue
from webhook_inbox.domain.errors import Unavailable
from webhook_inbox.domain.replay_report import ReplayOutcome, ReplayReport
from webhook_inbox.domain.trace import Trace
from webhook_inbox.ledger.queries import Ledger
from webhook_inbox.replay.replay import SentRuns
from webhook_inbox.replay.request import ReplayRequest


class RunLines:
    """Logs the runs that a replay sends; `ledger` reads the traces of their events."""

    def __init__(self, logger: Logger, ledger: Ledger) -> None:
        self._logger = logger
        self._ledger = ledger

    def __call__(self, sent: SentRuns) -> None:
        """Logs a batch; while the ledger does not answer, `trace_id` is empty."""
        traces = self._traces({(run.source, run.event_id) for _, run in sent.runs})
        by = sent.by
        for outcome, run in sent.runs:
            trace = traces.get((run.source, run.event_id))
            fields = {
                "outcome": str(outcome),
                "handler": run.handler,
                "source": run.source,
                "event_id": run.event_id,
                "type": run.type,
                "generation": run.generation + 1,
                "trace_id": trace.id if trace else "",
                "reason": sent.request.reason,
                "selection": sent.request.selection or "",
                "actor": by.name,
                "proof": str(by.proof),
                "on_behalf_of": by.on_behalf_of,
            }
            unsent = outcome is ReplayOutcome.UNSENT
            write = self._logger.warning if unsent else self._logger.info
            write(f"run {outcome}", extra=fields)

    def _traces(self, events: set[tuple[str, str]]) -> dict[tuple[str, str], Trace]:
        try:
            return self._ledger.traces(events) if events else {}
        except Unavailable:
            return {}


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
