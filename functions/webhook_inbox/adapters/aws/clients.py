"""AWS clients: `quick` ones for ingest, within a time budget; `steady` ones for all others.

They are botocore's, because boto3 would add 60 ms of CPU to a cold start for resources and
transfers that no function uses. The region, the credentials and, for the local runtime,
AWS_ENDPOINT_URL come from the process's environment.
"""

import random
import time
from collections.abc import Callable
from functools import cache, cached_property
from typing import Any, Final, TypeVar

import botocore.session
from botocore.config import Config
from botocore.handlers import add_expect_header

from webhook_inbox.adapters.aws.errors import Caller, may_pass, once
from webhook_inbox.domain.errors import NoTimeLeft, Unavailable

T = TypeVar("T")

# Seconds: to connect, to read.
QUICK: Final = (0.25, 0.7)
# A body of some megabytes takes longer than a row.
QUICK_BLOBS: Final = (0.25, 1.0)
# Slack, Zoom and Discord want an answer within 3 s; half a second is left for the network.
TOTAL_SECONDS: Final = 2.5
RETRY_PAUSE: Final = (0.02, 0.08)


class TimeBudget:
    """The time of one ingest invocation, shared by all its AWS calls.

    An attempt begins only if it fits with its full time-outs, so the provider gets its answer in
    time whatever fails. A transient error is retried once. Botocore's time-outs do not cover name
    resolution, a host with many unreachable addresses, or a response that arrives byte by byte;
    the function's own time-out ends those.
    """

    def __init__(
        self,
        *,
        total: float = TOTAL_SECONDS,
        monotonic: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
        jitter: Callable[[float, float], float] = random.uniform,
    ) -> None:
        self._total = total
        self._monotonic = monotonic
        self._sleep = sleep
        self._jitter = jitter
        self.begin()

    def begin(self) -> None:
        """Starts the time; to be called at the start of every invocation."""
        self._end = self._monotonic() + self._total

    def attempts_of(self, seconds: float) -> Caller:
        """Returns a caller for a client whose attempts take at most so many seconds."""

        def call(service: str, operation: str, attempt: Callable[[], T]) -> T:
            return self._call(service, operation, attempt, seconds)

        return call

    def _call(self, service: str, operation: str, attempt: Callable[[], T], seconds: float) -> T:
        if not self._fits(seconds):
            raise NoTimeLeft(service, operation)
        try:
            return once(service, operation, attempt)
        except Unavailable as error:
            pause = self._jitter(*RETRY_PAUSE)
            if not may_pass(error.__cause__) or not self._fits(pause + seconds):
                raise
        self._sleep(pause)
        return once(service, operation, attempt)

    def _fits(self, seconds: float) -> bool:
        return self._monotonic() + seconds <= self._end


def quick(service: str) -> Any:
    """Returns a client with short time-outs that does not retry; `TimeBudget` does."""
    connect, read = _limits(service)
    client = session().create_client(
        service,
        config=Config(
            connect_timeout=connect,
            read_timeout=read,
            retries={"mode": "standard", "total_max_attempts": 1},
            tcp_keepalive=True,
        ),
    )
    if service == "s3":
        # With "Expect: 100-continue" botocore waits up to 1 s before it sends a body, whatever
        # the time-outs.
        client.meta.events.unregister("before-call.s3", add_expect_header)
    return client


def quick_caller(service: str, budget: TimeBudget) -> Caller:
    """Returns a caller for a quick client of this service, within an invocation's budget."""
    connect, read = _limits(service)
    # The connect time-out applies twice, to TCP and to TLS.
    return budget.attempts_of(2 * connect + read)


class Lazy:
    """A client that is created at its first use: an S3 client costs 50 ms of CPU."""

    def __init__(self, make: Callable[[], Any]) -> None:
        self._make = make

    @cached_property
    def _client(self) -> Any:
        return self._make()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)


def _limits(service: str) -> tuple[float, float]:
    return QUICK_BLOBS if service == "s3" else QUICK


@cache
def session() -> Any:
    """Returns the process's one session."""
    # Shared by all clients, since its loader caches the parsed service models.
    return botocore.session.get_session()


USER_AGENT: Final = "webhook-inbox"
# Seconds.
CONNECT_TIMEOUT: Final = 1.0
READ_TIMEOUT: Final = 5.0
ATTEMPTS: Final = 4
# The calls that one client makes at the same time.
CONNECTIONS: Final = 16


def steady(service: str) -> Any:
    """Returns a client that retries by botocore's standard mode."""
    return session().create_client(
        service,
        config=Config(
            connect_timeout=CONNECT_TIMEOUT,
            read_timeout=READ_TIMEOUT,
            retries={"mode": "standard", "total_max_attempts": ATTEMPTS},
            max_pool_connections=CONNECTIONS,
            # An eighth of a run's CPU: the table's adapter renders each value itself, and AWS
            # validates it again. An S3 request with an empty key would be another operation.
            parameter_validation=service != "dynamodb",
            # The SDK builds its own anew for each call.
            user_agent=USER_AGENT,
            tcp_keepalive=True,
        ),
    )
