"""What CloudWatch knows of a queue and SQS does not tell."""

from datetime import timedelta
from typing import Any, Final

from webhook_inbox.adapters.aws import errors as calls
from webhook_inbox.domain.ports import Clock

# Datapoints come each minute, and minutes late; a queue at rest for 6 h has none.
LOOK_BACK: Final = timedelta(minutes=10)


class OldestMessage:
    """The age of the oldest message of a queue, as of some minutes ago.

    Args:
        client: a low-level CloudWatch client.
        clock: tells which datapoints are the latest.
    """

    def __init__(self, client: Any, clock: Clock, *, call: calls.Caller = calls.once) -> None:
        self._client = client
        self._clock = clock
        self._call = call

    def __call__(self, queue_name: str) -> timedelta | None:
        """Returns the age, or None where there is no datapoint.

        Raises:
            Unavailable: CloudWatch failed.
        """
        now = self._clock.now()
        answer = self._call(
            "cloudwatch",
            "GetMetricStatistics",
            lambda: self._client.get_metric_statistics(
                Namespace="AWS/SQS",
                MetricName="ApproximateAgeOfOldestMessage",
                Dimensions=[{"Name": "QueueName", "Value": queue_name}],
                StartTime=now - LOOK_BACK,
                EndTime=now,
                Period=60,
                Statistics=["Maximum"],
            ),
        )
        latest = max(answer.get("Datapoints", []), key=lambda d: d["Timestamp"], default=None)
        return None if latest is None else timedelta(seconds=float(latest["Maximum"]))
