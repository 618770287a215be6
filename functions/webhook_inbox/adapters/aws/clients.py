"""Clients of the AWS SDK, for all functions but ingest, which has its own (lean_clients).

The region, the credentials and, for the local runtime, AWS_ENDPOINT_URL come from the process's
environment.
"""

from functools import cache
from typing import Any, Final

import boto3
import botocore.session
from botocore.config import Config

USER_AGENT: Final = "webhook-inbox"
# Seconds.
CONNECT_TIMEOUT: Final = 1.0
READ_TIMEOUT: Final = 5.0
ATTEMPTS: Final = 4
# The calls that one client makes at the same time.
CONNECTIONS: Final = 16


@cache
def session() -> Any:
    """Returns the process's one session."""
    # Shared by all clients, since its loader caches the parsed service models.
    return botocore.session.get_session()


def steady(service: str) -> Any:
    """Returns a client that retries by botocore's standard mode."""
    return _over(session()).client(
        service,
        config=Config(
            connect_timeout=CONNECT_TIMEOUT,
            read_timeout=READ_TIMEOUT,
            retries={"mode": "standard", "total_max_attempts": ATTEMPTS},
            max_pool_connections=CONNECTIONS,
            # The SDK builds its own anew for each call.
            user_agent=USER_AGENT,
            tcp_keepalive=True,
        ),
    )


@cache
def _over(base: Any) -> Any:
    # Cached, since boto3 refuses to register its handlers with a session twice.
    return boto3.Session(botocore_session=base)
