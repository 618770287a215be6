"""What a call to a destination carries beside its content: key, trace, call chain, signature."""

import json
import string
from typing import Final
from urllib.parse import quote

import httpx

from webhook_inbox.destinations import propagation
from webhook_inbox.destinations.client.attempt import OutboundCall
from webhook_inbox.destinations.client.exchange import named
from webhook_inbox.destinations.credentials import DestinationCredentials
from webhook_inbox.domain.errors import Permanent
from webhook_inbox.domain.idempotency import IdempotencyKey
from webhook_inbox.domain.manifest import DestinationSpec
from webhook_inbox.domain.ports import Clock, Randomness

# What changes nothing at a destination: it needs neither journal nor key.
SAFE: Final = frozenset({"GET", "HEAD", "OPTIONS", "TRACE"})
# What may stand in a header; the rest is written as in a URL.
_PLAIN: Final = f"{string.punctuation} "
_AGENT_LIMIT: Final = 256
# What tells how long a body is: the one that is sent may be longer.
_MEASURES: Final = frozenset({b"content-length", b"transfer-encoding"})


def user_agent(call: OutboundCall) -> str:
    """Returns what a call says of itself: which event it is made for."""
    event = quote(f"{call.source}/{call.event_id}", errors="replace")
    return f"webhook-inbox ({event[:_AGENT_LIMIT]})"


class RequestBuilder:
    """Dresses the calls of one attempt to one destination."""

    def __init__(
        self,
        spec: DestinationSpec,
        call: OutboundCall,
        *,
        credentials: DestinationCredentials,
        clock: Clock,
        randomness: Randomness,
    ) -> None:
        self._spec = spec
        self._call = call
        self._credentials = credentials
        self._clock = clock
        self._randomness = randomness

    def check(self, request: httpx.Request) -> None:
        """Refuses a request that could not carry its key, before its effect begins.

        Raises:
            Permanent: as `on`.
        """
        if self._spec.key_field and request.method not in SAFE:
            self._with_field(request, "")

    def keyed(self, request: httpx.Request, key: str) -> bool:
        """Tells whether a dressed request carries a key, be it the handler's own."""
        in_field = bool(self._spec.key_field and key and request.method not in SAFE)
        return in_field or (
            bool(self._spec.key_header) and self._spec.key_header in request.headers
        )

    def on(self, request: httpx.Request, key: str) -> httpx.Request:
        """Returns a request as it is sent, but for its credentials.

        Args:
            request: as the handler made it.
            key: the effect's, "" for none.

        Raises:
            Permanent: its body cannot carry the key.
            Transient: what signs it cannot be read.
        """
        spec, call = self._spec, self._call
        headers, content = request.headers.copy(), request.read()
        key = "" if request.method in SAFE else key
        written = IdempotencyKey(key).uuid if key and spec.key_format == "uuid" else key
        if spec.key_field and key:
            content = self._with_field(request, written)
        if spec.key_header and key:
            # What the handler wrote itself is a business key: the arguments have it, so that
            # another one in a later attempt holds the run.
            headers.setdefault(spec.key_header, written)
        origin = f"{call.source}\0{call.event_id}"
        span = self._randomness.token()[:16]
        headers["traceparent"] = propagation.onward(call.traceparent, span=span, origin=origin)
        onward = call.call_chain.onward(call.handler, source=call.source, event_id=call.event_id)
        headers.update({name: quote(value, safe=_PLAIN) for name, value in onward.items()})
        now, name = self._clock.now(), written or call.event_id
        headers.update(self._credentials.signature(name, content, now))
        return httpx.Request(
            request.method,
            request.url,
            headers=[pair for pair in headers.raw if pair[0].lower() not in _MEASURES],
            content=content,
            extensions=request.extensions,
        )

    def _with_field(self, request: httpx.Request, key: str) -> bytes:
        """Returns a JSON body with the key in the field that the destination reads.

        A field that the handler filled itself stays: PagerDuty resolves an alert by the key that
        triggered it.
        """
        try:
            body = json.loads(request.read())
        except (ValueError, RecursionError):
            body = None
        if not isinstance(body, dict):
            raise Permanent(
                f"{named(self._spec, request)}: its key goes into {self._spec.key_field!r}, and the"
                " body is no JSON object: give json={…}, or effect=None to send it without a key"
            )
        return json.dumps({self._spec.key_field: key, **body}).encode()
