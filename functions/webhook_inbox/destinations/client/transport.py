"""Sends calls to one origin, with credentials and within limits of time and bytes."""

import socket
import ssl
from collections.abc import Callable, Mapping
from typing import Any, Final

import httpx

from webhook_inbox.destinations.client.body import ALLOWANCE, Allowance, with_bounded_body
from webhook_inbox.destinations.credentials import Authorization
from webhook_inbox.destinations.responses import TransportFailure
from webhook_inbox.domain.errors import Permanent

# The extension of a request that holds its authorization.
AUTHORIZATION: Final = "webhook_inbox.authorization"
_NOT_SENT: Final = (httpx.ConnectTimeout, httpx.PoolTimeout)


class Authorizing(httpx.BaseTransport):
    """Adds the credentials after the last place that logs or raises a request.

    It sends to one origin only: a redirect cannot send the credentials to another host. And it is
    the only place that decodes bodies, those of redirects included.
    """

    def __init__(self, inner: httpx.BaseTransport, base_url: str) -> None:
        self._inner = inner
        self._base = httpx.URL(base_url)

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """See `httpx.BaseTransport`."""
        if origin(request.url) != origin(self._base):
            raise Permanent(f"{request.url.host} is not {self._base.host}: not sent")
        granted = request.extensions.get(AUTHORIZATION, Authorization())
        headers = request.headers.copy()
        for name, value in granted.headers.items():
            headers.setdefault(name, value)
        url = request.url.copy_merge_params(granted.query) if granted.query else request.url
        # Without one: a request of the handler's own `auth`, such as that of a token.
        allowance = request.extensions.get(ALLOWANCE) or Allowance()
        own = {AUTHORIZATION, ALLOWANCE}
        extensions = {name: value for name, value in request.extensions.items() if name not in own}
        sent = httpx.Request(
            request.method, url, headers=headers, stream=request.stream, extensions=extensions
        )
        answer = self._inner.handle_request(sent)
        return with_bounded_body(answer, allowance, method=request.method)

    def close(self) -> None:
        """Does nothing: other clients share the transport."""


def origin(url: httpx.URL) -> tuple[str, str, int | None]:
    """Returns scheme, host and port; the port is None for the default of the scheme."""
    return url.scheme, url.host, url.port


def in_time(
    wanted: Mapping[str, float | None], *, seconds: float, left: Callable[[], float]
) -> dict[str, Any]:
    """Returns the extensions of a request that may take this many seconds in total.

    httpx limits each step separately. Connecting has half of the time, since TCP and TLS each
    take it; each later step has the time that is left when it begins.

    Args:
        wanted: the limits of the steps in the request.
        seconds: the limit in total.
        left: returns the seconds that are left.
    """
    limits = {step: min(limit or seconds, seconds) for step, limit in wanted.items()}
    limits["connect"] = min(limits.get("connect", seconds), seconds / 2)

    def trace(event: str, _: Any) -> None:
        if event.endswith(".started"):
            for step, limit in limits.items():
                limits[step] = min(limit, max(left(), 0.001))

    return {"timeout": limits, "trace": trace}


def failure_of(error: httpx.RequestError) -> TransportFailure | None:
    """Returns why there is no response; None where the request itself cannot be sent."""
    if isinstance(error, _NOT_SENT):
        return TransportFailure.UNREACHED
    if isinstance(error, httpx.ConnectError):
        return _connecting(error)
    if isinstance(error, httpx.TimeoutException):
        return TransportFailure.TIMED_OUT
    if isinstance(error, httpx.NetworkError | httpx.RemoteProtocolError | httpx.DecodingError):
        return TransportFailure.CUT
    return None


def _connecting(error: BaseException) -> TransportFailure:
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, socket.gaierror) and cause.errno != socket.EAI_AGAIN:
            return TransportFailure.DNS
        if isinstance(cause, ssl.SSLError):
            return TransportFailure.TLS
        cause = cause.__cause__ or cause.__context__
    return TransportFailure.UNREACHED
