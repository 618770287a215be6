"""Fetches keys and certificates that providers publish."""

from typing import Final
from urllib.parse import urlsplit

from webhook_inbox.adapters.aws import errors
from webhook_inbox.adapters.aws.connection import USER_AGENT, Connection, Limits, Reply, target
from webhook_inbox.domain.errors import Unavailable
from webhook_inbox.domain.ports import Fetch

LIMITS: Final = Limits(connect=0.5, read=0.8)
# The connect time-out applies twice, to TCP and to TLS.
LONGEST: Final = 2 * LIMITS.connect + LIMITS.read
LIMIT: Final = 64 * 1024


class HttpsFetcher:
    """The port `Fetcher`; `call` makes its calls, within a `TimeBudget` for ingest."""

    def __init__(self, *, call: errors.Caller = errors.once) -> None:
        self._call = call

    def fetch(self, wanted: Fetch) -> bytes:
        """See the port."""
        reply = self._call("https", "GET", lambda: _once(wanted))
        if reply.status != 200:
            # SNS's URL of a confirmation has a token in its query (G10).
            named = wanted.url.partition("?")[0]
            raise Unavailable("https", "GET", f"{named} answered {reply.status}")
        return reply.body


def _once(wanted: Fetch) -> Reply:
    url = urlsplit(wanted.url)
    # Some servers refuse a request without a user agent.
    method, headers = "GET", {"accept": "*/*", "user-agent": USER_AGENT}
    if wanted.body is not None:
        method, headers = "POST", {**headers, "content-type": "application/json"}
    server = Connection.to(url, LIMITS)
    try:
        return server.exchange(method, target(url), headers, wanted.body or b"", limit=LIMIT)
    finally:
        server.close()
