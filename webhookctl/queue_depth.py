"""The depth and the settings of queues, and the age of their oldest messages."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from webhook_inbox.adapters.aws.sqs import COUNTS, LOOK_BACK
from webhook_inbox.client.target import Target
from webhook_inbox.client.times import span
from webhookctl.preflight.reader import Reader, Unread

ASKED: Final = (*COUNTS, "VisibilityTimeout", "RedrivePolicy")


@dataclass(frozen=True, slots=True)
class Depth:
    """A queue; the counts are approximate.

    Attributes:
        visible: the messages that can be received.
        in_flight: those that a worker holds, or that hide.
        delayed: those whose delay has not ended.
        visibility: the visibility timeout.
        redrives: whether SQS moves messages to a DLQ.
        oldest: the age of the oldest message; None where CloudWatch has none.
    """

    visible: int
    in_flight: int
    delayed: int
    visibility: timedelta
    redrives: bool
    oldest: timedelta | None = None

    def __str__(self) -> str:
        counts = f"{self.visible} visible, {self.in_flight} in flight, {self.delayed} delayed"
        return counts if self.oldest is None else f"{counts}, oldest {span(self.oldest)}"


def depths(
    target: Target,
    reader: Reader,
    urls: Mapping[str, str],
    *,
    aged_at: datetime | None = None,
) -> dict[str, Depth]:
    """Returns the queues by lane; a call for each, and with `aged_at` one for all ages at a time.

    CloudWatch leaves out messages that were received three times, as those of a DLQ are.

    Raises:
        Unread: SQS refused a call.
    """
    ages = {} if target.local or aged_at is None else _ages(reader, urls, aged_at)
    return {lane: _depth(reader, url, ages.get(lane)) for lane, url in urls.items()}


def _depth(reader: Reader, url: str, oldest: timedelta | None) -> Depth:
    answer = reader.call("sqs", "get_queue_attributes", QueueUrl=url, AttributeNames=list(ASKED))
    found = answer["Attributes"]
    visible, in_flight, delayed = (int(found.get(name, 0)) for name in COUNTS)
    return Depth(
        visible,
        in_flight,
        delayed,
        visibility=timedelta(seconds=int(found["VisibilityTimeout"])),
        redrives="deadLetterTargetArn" in json.loads(found.get("RedrivePolicy", "{}")),
        oldest=oldest if visible else None,
    )


def _ages(reader: Reader, urls: Mapping[str, str], now: datetime) -> dict[str, timedelta]:
    """Returns the ages by lane; none without the right, since the counts matter more."""
    lanes = list(urls)
    queries = [
        {
            "Id": f"age{number}",
            "MetricStat": {
                "Metric": {
                    "Namespace": "AWS/SQS",
                    "MetricName": "ApproximateAgeOfOldestMessage",
                    "Dimensions": [{"Name": "QueueName", "Value": urls[lane].rpartition("/")[2]}],
                },
                "Period": 60,
                "Stat": "Maximum",
            },
        }
        for number, lane in enumerate(lanes)
    ]
    try:
        answer = reader.call(
            "cloudwatch",
            "get_metric_data",
            MetricDataQueries=queries,
            StartTime=now - LOOK_BACK,
            EndTime=now,
            ScanBy="TimestampDescending",
        )
    except Unread:
        return {}
    values = {each["Id"]: each["Values"] for each in answer["MetricDataResults"]}
    return {
        lane: timedelta(seconds=values[f"age{number}"][0])
        for number, lane in enumerate(lanes)
        if values.get(f"age{number}")
    }
