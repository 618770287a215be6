"""Counts calls to AWS, and estimates their price."""

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
