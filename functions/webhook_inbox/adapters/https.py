"""Fetches keys and certificates that providers publish."""

from typing import Final
from urllib.parse import urlsplit

from webhook_inbox.adapters.aws import errors
from webhook_inbox.adapters.aws.connection import USER_AGENT, Connection, Limits, Reply, target
from webhook_inbox.domain.errors import NotPublished, Unavailable
from webhook_inbox.domain.ports import Fetch

LIMITS: Final = Limits(connect=0.5, read=0.8)
# The connect time-out applies twice, to TCP and to TLS.
LONGEST: Final = 2 * LIMITS.connect + LIMITS.read
LIMIT: Final = 64 * 1024
# Statuses below 500 with which a server that has the document answers.
PASSING: Final = frozenset({408, 425, 429})


class HttpsFetcher:
    """The port `Fetcher`; `call` makes its calls, within a `TimeBudget` for ingest."""

    def __init__(self, *, call: errors.Caller = errors.once) -> None:
        self._call = call

    def fetch(self, wanted: Fetch) -> bytes:
        """See the port."""
        reply = self._call("https", "GET", lambda: _exchange(wanted))
        if reply.status == 200:
            return reply.body
        # SNS's URL of a confirmation has a token in its query (G10).
        cause = f"{wanted.url.partition('?')[0]} answered {reply.status}"
        if reply.status >= 500 or reply.status in PASSING:
            raise Unavailable("https", "GET", cause)
        raise NotPublished(cause)


def _exchange(wanted: Fetch) -> Reply:
    """Returns the response; raises TimeoutError after `LONGEST`, whatever is not answered.

    The limits of a connection include neither name resolution nor a host's other addresses, and
    anyone can name a host of SNS. Without this limit, Lambda's time-out would end the function, an
    error that pages.
    """
    # Loaded with the first key.
    from queue import Empty, SimpleQueue  # noqa: PLC0415
    from threading import Thread  # noqa: PLC0415

    results: SimpleQueue[Reply | Exception] = SimpleQueue()

    def work() -> None:
        try:
            results.put(_once(wanted))
        except Exception as error:  # noqa: BLE001 - raised by the caller
            results.put(error)

    Thread(target=work, daemon=True).start()
    try:
        result = results.get(timeout=LONGEST)
    except Empty:
        raise TimeoutError(f"no response within {LONGEST} s") from None
    if isinstance(result, Exception):
        raise result
    return result


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
