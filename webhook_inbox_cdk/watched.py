"""The names of the resources that alarms, dashboard and queries watch."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from webhook_inbox_cdk.alarm_declaration import Series, of_inbox

from webhook_inbox.domain.manifest import Manifest
from webhook_inbox.domain.metrics import Metric

LAMBDA: Final = "AWS/Lambda"
SQS: Final = "AWS/SQS"
API: Final = "AWS/ApiGateway"
DYNAMODB: Final = "AWS/DynamoDB"
LOGS: Final = "AWS/Logs"
VISIBLE: Final = "ApproximateNumberOfMessagesVisible"
AGE: Final = "ApproximateAgeOfOldestMessage"


@dataclass(frozen=True, slots=True, kw_only=True)
class Watched:
    """The resources of a stack by name; `processors`, `work` and `dead` by lane.

    `answer_limit` is the strictest of the sources' providers, in seconds.
    """

    namespace: str
    manifest: Manifest
    api: str
    table: str
    ingest: str
    replay: str
    reconciler: str
    processors: Mapping[str, str]
    work: Mapping[str, str]
    dead: Mapping[str, str]
    answer_limit: int

    def own(self, metric: Metric, statistic: str = "Sum", **dimensions: str) -> Series:
        """Returns the series of a metric that the functions write."""
        return of_inbox(self.namespace, metric, statistic, **dimensions)

    def of_api(self, name: str, statistic: str = "Sum") -> Series:
        """Returns a metric of API Gateway."""
        dimensions = {"ApiId": self.api}
        return Series(namespace=API, name=name, statistic=statistic, dimensions=dimensions)


def of_function(name: str, function: str) -> Series:
    """Returns a metric of a Lambda function."""
    return Series(namespace=LAMBDA, name=name, dimensions={"FunctionName": function})


def of_queue(name: str, queue: str, statistic: str = "Maximum") -> Series:
    """Returns a metric of a queue."""
    dimensions = {"QueueName": queue}
    return Series(namespace=SQS, name=name, statistic=statistic, dimensions=dimensions)


def of_table(name: str, table: str, **operation: str) -> Series:
    """Returns a metric of the table, or with `Operation` of one kind of its requests."""
    return Series(namespace=DYNAMODB, name=name, dimensions={"TableName": table, **operation})


def of_logs(group: str) -> Series:
    """Returns the bytes that a log group receives."""
    return Series(namespace=LOGS, name="IncomingBytes", dimensions={"LogGroupName": group})
