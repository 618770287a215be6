"""Clients of AWS services, set up for how long their caller can wait.

They are botocore's, which are what boto3's low-level clients are; boto3 itself would add 60 ms
of CPU to a cold start for resources and transfers that nothing here uses. The region, the
credentials and, for the local runtime, AWS_ENDPOINT_URL come from the process's environment.
"""

from functools import cache
from typing import Any, Final

import botocore.session
from botocore.config import Config

from webhook_inbox.adapters.calls import Caller
from webhook_inbox.adapters.patience import Patience

# Seconds: to connect, to read. Both together are one attempt of `Patience`.
QUICK: Final = (0.3, 0.7)
# A body of some megabytes takes longer than a row; PutItem and SendMessage still fit behind it.
QUICK_BLOBS: Final = (0.3, 1.2)
STEADY: Final = (1.0, 5.0)
STEADY_ATTEMPTS: Final = 4


def quick(service: str) -> Any:
    """Returns a client that tries once and soon gives up; `patience` retries. For ingest."""
    connect, read = _limits(service)
    return _session().create_client(
        service,
        config=Config(
            connect_timeout=connect,
            read_timeout=read,
            retries={"mode": "standard", "total_max_attempts": 1},
            tcp_keepalive=True,
        ),
    )


def quick_caller(service: str, patience: Patience) -> Caller:
    """Returns how to call a quick client of this service within an invocation's patience."""
    return patience.attempts_of(sum(_limits(service)))


def steady(service: str) -> Any:
    """Returns a client that retries by botocore's standard mode. For all but ingest."""
    return _session().create_client(
        service,
        config=Config(
            connect_timeout=STEADY[0],
            read_timeout=STEADY[1],
            retries={"mode": "standard", "total_max_attempts": STEADY_ATTEMPTS},
            tcp_keepalive=True,
        ),
    )


def _limits(service: str) -> tuple[float, float]:
    return QUICK_BLOBS if service == "s3" else QUICK


@cache
def _session() -> Any:
    # One for all clients of a process: its loader keeps the parsed service models.
    return botocore.session.get_session()
