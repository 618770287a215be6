"""Clients that retry by themselves, for every function but ingest."""

from functools import cache
from typing import Any, Final

import boto3
from botocore.config import Config

from webhook_inbox.adapters.aws.clients import session

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
    # Once for each: boto3 refuses to add its own to a session twice.
    return boto3.Session(botocore_session=base)
