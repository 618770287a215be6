"""Counts the calls to AWS of one console, and estimates their price."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from threading import Lock
from typing import Any, Final

from webhook_inbox.adapters.aws.account import Clients, SharedClients
from webhook_inbox.client.target import Target
from webhook_inbox.domain import prices

# Dollars for a million requests. DynamoDB's reads are counted in units, by the table; the calls of
# the other services that pages make are free.
PRICES: Final[Mapping[str, float]] = {
    "cloudwatch": prices.METRIC_READS,
    "s3": prices.S3_GETS,
    "secretsmanager": prices.SECRET_READS,
    "sns": prices.SNS_REQUESTS,
    "sqs": prices.SQS_REQUESTS,
}
# GetMetricData is priced by the metrics that it reads.
METRICS: Final = ("cloudwatch", "get_metric_data")
# The seconds between two readings of a list in an open tab; figures are read once a minute.
LIST_SECONDS: Final = 10
HOUR: Final = 3600
# The read units of one list: its events, and the partitions of the index.
LIST_UNITS: Final = 100
# The metrics of the plots without those of sources, and doctor's ages of queues for each lane.
PLOTTED: Final = 5
AGES: Final = 2
# The partitions of the due index that counts and doctor read for a handler, each half a unit.
COUNTED: Final = 50


def hourly(*, sources: int, lanes: int, handlers: int) -> float:
    """Returns the estimated dollars of one open overview of a stack for an hour.

    The reads of DynamoDB, and the metrics; the other calls cost less than a tenth of it.
    """
    metrics = (PLOTTED + sources + AGES * lanes) * 60
    units = LIST_UNITS * HOUR / LIST_SECONDS + COUNTED * handlers / 2 * 60
    return (metrics * prices.METRIC_READS + units * prices.READ_UNITS) / 1_000_000


class AwsCalls:
    """The calls of one session, which several threads make.

    Attributes:
        counts: the number of calls by service and operation.
        dollars: the estimate of their price.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._counted: tuple[Target, Target] | None = None
        self.counts: Counter[tuple[str, str]] = Counter()
        self.dollars = 0.0

    def note(self, service: str, operation: str, values: Mapping[str, Any]) -> None:
        """Counts one call."""
        times = len(values["MetricDataQueries"]) if (service, operation) == METRICS else 1
        with self._lock:
            self.counts[service, operation] += 1
            self.dollars += times * PRICES.get(service, 0.0) / 1_000_000

    def counted(self, target: Target) -> Target:
        """Returns the target with clients whose calls are counted; each client is made once."""
        with self._lock:
            if self._counted is None or target is not self._counted[0]:
                clients = SharedClients(partial(self._client, target.client))
                self._counted = target, replace(target, client=clients)
            return self._counted[1]

    def _client(self, clients: Clients, service: str) -> "CountedClient":
        return CountedClient(clients(service), service, self)


class CountedClient:
    """A client of a service that counts its calls."""

    def __init__(self, client: Any, service: str, calls: AwsCalls) -> None:
        self._client = client
        self._service = service
        self._calls = calls

    def __getattr__(self, name: str) -> Any:
        """Returns an operation, or an attribute of the client."""
        found = getattr(self._client, name)
        if not callable(found) or name.startswith("_"):
            return found

        def call(*args: Any, **values: Any) -> Any:
            self._calls.note(self._service, name, values)
            return found(*args, **values)

        return call
