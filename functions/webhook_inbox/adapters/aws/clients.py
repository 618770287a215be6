"""Clients for ingest, which cannot wait long; `steady` has those of all others.

They are botocore's, which are what boto3's low-level clients are; boto3 itself would add 60 ms
of CPU to a cold start for resources and transfers that ingest does not use. The region, the
credentials and, for the local runtime, AWS_ENDPOINT_URL come from the process's environment.
"""

from collections.abc import Callable
from functools import cache, cached_property
from typing import Any, Final

import botocore.session
from botocore.config import Config
from botocore.handlers import add_expect_header

from webhook_inbox.adapters.aws.errors import Caller
from webhook_inbox.adapters.aws.time_budget import TimeBudget

# Seconds: to connect, to read.
QUICK: Final = (0.25, 0.7)
# A body of some megabytes takes longer than a row.
QUICK_BLOBS: Final = (0.25, 1.0)


def quick(service: str) -> Any:
    """Returns a client that tries once and soon gives up; `TimeBudget` retries. For ingest."""
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
        # With "Expect: 100-continue" botocore waits up to 1 s for leave to send a body,
        # whatever the time-outs.
        client.meta.events.unregister("before-call.s3", add_expect_header)
    return client


def quick_caller(service: str, patience: TimeBudget) -> Caller:
    """Returns how to call a quick client of this service within an invocation's patience."""
    connect, read = _limits(service)
    # The time-out of connecting counts twice, for TCP and for TLS.
    return patience.attempts_of(2 * connect + read)


class Lazy:
    """A client that is made when it is first used.

    For what few invocations need: an S3 client costs 50 ms of CPU to make.
    """

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
    # One for all clients: its loader keeps the parsed service models.
    return botocore.session.get_session()


# Seconds.
CONNECT_TIMEOUT: Final = 1.0
READ_TIMEOUT: Final = 5.0
ATTEMPTS: Final = 4


def steady(service: str) -> Any:
    """Returns a client of a service; it retries by botocore's standard mode."""
    return _over(session()).client(
        service,
        config=Config(
            connect_timeout=CONNECT_TIMEOUT,
            read_timeout=READ_TIMEOUT,
            retries={"mode": "standard", "total_max_attempts": ATTEMPTS},
            tcp_keepalive=True,
        ),
    )


@cache
def _over(base: Any) -> Any:
    import boto3  # noqa: PLC0415 - ingest must not load it

    # Once for each: boto3 refuses to add its own to a session twice.
    return boto3.Session(botocore_session=base)
