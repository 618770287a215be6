"""Clients of the AWS SDK, for all functions but ingest, which has its own (lean_clients).

They are botocore's, because boto3 would add 60 ms of CPU to a cold start for resources and
transfers that no function uses. The region, the credentials and, for the local runtime,
AWS_ENDPOINT_URL come from the process's environment.
"""

from functools import cache
from typing import Any, Final

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
