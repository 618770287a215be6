"""Reads metrics of a stack from CloudWatch."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, Final

from botocore.exceptions import BotoCoreError, ClientError

from webhook_inbox.client.target import Target
from webhook_inbox.domain.metrics import VERIFIED_WITH_PREVIOUS, namespace

# CloudWatch keeps values of one minute for 15 days.
LOOK_BACK: Final = timedelta(days=14)
# A call takes 500 queries; an inbox has fewer sources that rotate at once.
MOST: Final = 500
HOUR: Final = 3600


def last_verified_with_previous(
    target: Target, sources: Sequence[str], now: datetime
) -> dict[str, datetime] | None:
    """Returns when a delivery of each source last needed the previous secret, to the hour.

    Sources without such a delivery are left out. None where CloudWatch has no answer; the local
    runtime has no metrics.
    """
    if target.local or not sources:
        return None if target.local else {}
    asked = list(sources)[:MOST]
    queries = [
        {"Id": f"source{number}", "MetricStat": _statistic(target, source)}
        for number, source in enumerate(asked)
    ]
    try:
        answer = target.client("cloudwatch").get_metric_data(
            MetricDataQueries=queries,
            StartTime=now - LOOK_BACK,
            EndTime=now,
            ScanBy="TimestampDescending",
        )
    except (BotoCoreError, ClientError):
        return None
    found = {each["Id"]: each for each in answer["MetricDataResults"]}
    times = {source: _latest(found[f"source{number}"]) for number, source in enumerate(asked)}
    return {source: at for source, at in times.items() if at is not None}


def _statistic(target: Target, source: str) -> dict[str, Any]:
    metric = {
        "Namespace": namespace(target.stack),
        "MetricName": VERIFIED_WITH_PREVIOUS.name,
        "Dimensions": [{"Name": "source", "Value": source}],
    }
    return {"Metric": metric, "Period": HOUR, "Stat": "Sum"}


def _latest(result: Any) -> datetime | None:
    values = zip(result["Timestamps"], result["Values"], strict=True)
    return max((at for at, value in values if value > 0), default=None)
