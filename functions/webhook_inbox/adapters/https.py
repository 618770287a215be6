"""Fetches keys and certificates that providers publish."""

from functools import cached_property
from typing import Final

import urllib3

from webhook_inbox.adapters.aws import errors
from webhook_inbox.domain.errors import Unavailable
from webhook_inbox.domain.ports import Fetch

CONNECT: Final = 0.5
READ: Final = 0.8
# The connect time-out applies twice, to TCP and to TLS.
LONGEST: Final = 2 * CONNECT + READ
LIMIT: Final = 64 * 1024


class HttpsFetcher:
    """The port `Fetcher`; `call` makes its calls, within a `TimeBudget` for ingest."""

    def __init__(self, *, call: errors.Caller = errors.once) -> None:
        self._call = call

    def fetch(self, wanted: Fetch) -> bytes:
        """See the port."""
        status, body = self._call("https", "GET", lambda: self._once(wanted))
        if status != 200 or len(body) > LIMIT:
            raise Unavailable("https", "GET", f"{wanted.url} answered {status}, {len(body)} bytes")
        return body

    @cached_property
    def _pool(self) -> urllib3.PoolManager:
        # Created at first use: loading the system's certificates takes milliseconds.
        return urllib3.PoolManager(cert_reqs="CERT_REQUIRED", retries=False)

    def _once(self, wanted: Fetch) -> tuple[int, bytes]:
        answer = self._pool.request(
            "GET" if wanted.body is None else "POST",
            wanted.url,
            body=wanted.body,
            headers=None if wanted.body is None else {"content-type": "application/json"},
            timeout=urllib3.Timeout(connect=CONNECT, read=READ),
            redirect=False,
            preload_content=False,
        )
        try:
            return answer.status, answer.read(LIMIT + 1)
        finally:
            answer.close()
