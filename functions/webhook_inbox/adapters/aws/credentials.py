"""A function's credentials: in its environment, or with SnapStart from Lambda's endpoint.

https://docs.aws.amazon.com/sdkref/latest/guide/feature-container-credentials.html
"""

import json
import os
import time
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Final
from urllib.parse import urlsplit

from webhook_inbox.adapters.aws.connection import Connection, Limits, target
from webhook_inbox.adapters.aws.errors import AwsError
from webhook_inbox.adapters.aws.sigv4 import Credentials

# The endpoint is on the same machine; it may extend an attempt by 0.3 s.
LIMITS: Final = Limits(connect=0.1, read=0.2)
# Seconds: how long before they expire others are fetched, and the pause after a failed try.
EARLY: Final = 300.0
PAUSE: Final = 30.0


class CredentialSource:
    """The credentials of this process; `now` returns the epoch time in seconds."""

    def __init__(
        self, environ: Mapping[str, str] = os.environ, *, now: Callable[[], float] = time.time
    ) -> None:
        self._environ = environ
        self._now = now
        self._held = Credentials("", "")
        # Epoch seconds, of those from the endpoint.
        self._expire = self._next_try = 0.0

    def current(self) -> Credentials:
        """Returns valid credentials.

        Raises:
            AwsError: there are none, or the endpoint does not give any.
            OSError: the endpoint cannot be reached, and those from before have expired.
        """
        given = self._environ
        if key := given.get("AWS_ACCESS_KEY_ID"):
            token = given.get("AWS_SESSION_TOKEN", "")
            return Credentials(key, given.get("AWS_SECRET_ACCESS_KEY", ""), token)
        now = self._now()
        ended = now >= self._expire
        if ended or now >= max(self._expire - EARLY, self._next_try):
            try:
                self._held, self._expire = self._fetch()
            except (AwsError, OSError):
                self._next_try = now + PAUSE
                if ended:
                    raise
        return self._held

    def expired(self) -> None:
        """Has the next call fetch others, since AWS called these expired."""
        self._expire = 0.0

    def _fetch(self) -> tuple[Credentials, float]:
        url = urlsplit(self._environ.get("AWS_CONTAINER_CREDENTIALS_FULL_URI", ""))
        if not url.hostname:
            raise AwsError("NoCredentials", "the environment has neither keys nor an endpoint")
        server = Connection.to(url, LIMITS)
        token = self._environ.get("AWS_CONTAINER_AUTHORIZATION_TOKEN", "")
        try:
            reply = server.exchange("GET", target(url), {"authorization": token}, b"")
        finally:
            server.close()
        try:
            data = json.loads(reply.body)
            keys = Credentials(data["AccessKeyId"], data["SecretAccessKey"], data["Token"])
            return keys, datetime.fromisoformat(data["Expiration"]).timestamp()
        except (ValueError, KeyError, TypeError):
            # Not chained: the original error may contain the keys.
            message = "the endpoint gave none"
            raise AwsError("NoCredentials", message, status=reply.status) from None
