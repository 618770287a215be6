"""Reads alarms and metrics of Amazon CloudWatch, and sets the state of an alarm."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from webhook_inbox.adapters.aws.account import Clients
from webhook_inbox.adapters.aws.errors import once
from webhook_inbox.adapters.aws.reader import Reader

# A call takes 500 queries.
MOST: Final = 500


@dataclass(frozen=True, slots=True)
class MetricStatistic:
    """A statistic of one metric, for each period."""

    namespace: str
    name: str
    dimensions: Mapping[str, str]
    statistic: str
    period: timedelta


def read_metrics(
    reader: Reader, statistics: Mapping[str, MetricStatistic], *, start: datetime, end: datetime
) -> dict[str, list[tuple[datetime, float]]]:
    """Returns the times and values of statistics by their ids, in one call.

    Raises:
        Unread: CloudWatch failed, or refused the call.
    """
    answer = reader.call(
        "cloudwatch",
        "get_metric_data",
        MetricDataQueries=[
            {
                "Id": id_,
                "MetricStat": {
                    "Metric": {
                        "Namespace": each.namespace,
                        "MetricName": each.name,
                        "Dimensions": [
                            {"Name": name, "Value": value}
                            for name, value in each.dimensions.items()
                        ],
                    },
                    "Period": int(each.period.total_seconds()),
                    "Stat": each.statistic,
                },
            }
            for id_, each in statistics.items()
        ],
        StartTime=start,
        EndTime=end,
    )
    return {
        each["Id"]: list(zip(each["Timestamps"], each["Values"], strict=True))
        for each in answer["MetricDataResults"]
    }


@dataclass(frozen=True, slots=True)
class AlarmState:
    """An alarm's name and description, its state, and the topics that it notifies."""

    name: str
    text: str
    state: str
    since: datetime
    reason: str
    topics: tuple[str, ...]


def describe_alarms(clients: Clients, prefix: str) -> list[AlarmState]:
    """Returns the alarms whose names begin so.

    Raises:
        Unavailable: CloudWatch failed; AccessDenied: it refused the call.
    """
    pages = clients("cloudwatch").get_paginator("describe_alarms")
    wanted = {"AlarmNamePrefix": prefix, "AlarmTypes": ["MetricAlarm"]}
    found = once("cloudwatch", "DescribeAlarms", lambda: list(pages.paginate(**wanted)))
    return [
        AlarmState(
            name=each["AlarmName"],
            text=each.get("AlarmDescription", ""),
            state=each["StateValue"],
            since=each.get("StateTransitionedTimestamp") or each["StateUpdatedTimestamp"],
            reason=each.get("StateReason", ""),
            topics=tuple(each.get("AlarmActions", ())),
        )
        for page in found
        for each in page.get("MetricAlarms", ())
    ]


def set_alarm_state(clients: Clients, name: str, state: str, reason: str) -> None:
    """Sets the state of an alarm until CloudWatch evaluates it again, and notifies its topics.

    Raises:
        Unavailable: CloudWatch failed; AccessDenied: it refused the call.
    """
    client = clients("cloudwatch")
    wanted = {"AlarmName": name, "StateValue": state, "StateReason": reason}
    once("cloudwatch", "SetAlarmState", lambda: client.set_alarm_state(**wanted))
