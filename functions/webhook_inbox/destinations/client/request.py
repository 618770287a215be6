"""Completes requests: idempotency key, trace, call chain and signature."""

import json
import string
from typing import Final
from urllib.parse import quote

import httpx

from webhook_inbox.destinations.client.attempt import OutboundCall
from webhook_inbox.destinations.client.exchange import SAFE, named
from webhook_inbox.destinations.credentials import DestinationCredentials
from webhook_inbox.domain.errors import Permanent
from webhook_inbox.domain.idempotency import IdempotencyKey
from webhook_inbox.domain.manifest import DestinationSpec
from webhook_inbox.domain.ports import Clock

# Other characters are percent-encoded in a header.
_PLAIN: Final = f"{string.punctuation} "
_AGENT_LIMIT: Final = 256
# Headers with the length of the body: it may grow by the key.
_MEASURES: Final = frozenset({b"content-length", b"transfer-encoding"})


def user_agent(call: OutboundCall) -> str:
    """Returns the user agent of a call, which names its event."""
    event = quote(f"{call.source}/{call.event_id}", errors="replace")
    return f"webhook-inbox ({event[:_AGENT_LIMIT]})"


class RequestBuilder:
    """Completes the requests of one attempt to one destination."""

    def __init__(
        self,
        spec: DestinationSpec,
        call: OutboundCall,
        *,
        credentials: DestinationCredentials,
        clock: Clock,
    ) -> None:
        self._spec = spec
        self._call = call
        self._credentials = credentials
        self._clock = clock

    def check(self, request: httpx.Request) -> None:
        """Rejects a request that has no place for its key, before its effect begins.

        Raises:
            Permanent: as `complete`.
        """
        if self._spec.key_field and request.method not in SAFE:
            self._with_field(request, "")

    def keyed(self, request: httpx.Request, key: str) -> bool:
        """Returns whether a complete request has a key, its own or one that the handler set."""
        in_field = bool(self._spec.key_field and key and request.method not in SAFE)
        return in_field or (
            bool(self._spec.key_header) and self._spec.key_header in request.headers
        )

    def complete(self, request: httpx.Request, key: str) -> httpx.Request:
        """Returns a request as it is sent, without its credentials.

        Args:
            request: as the handler made it.
            key: the key of the effect, "" for none.

        Raises:
            Permanent: its body has no place for the key.
            Transient: the secret that signs it cannot be read.
        """
        spec, call = self._spec, self._call
        headers, content = request.headers.copy(), request.read()
        key = "" if request.method in SAFE else key
        written = IdempotencyKey(key).uuid if key and spec.key_format == "uuid" else key
        if spec.key_field and key:
            content = self._with_field(request, written)
        if spec.key_header and key:
            # A key that the handler set is a business key. It is one of the arguments, so that a
            # different key in a later attempt holds the run.
            headers.setdefault(spec.key_header, written)
        headers["traceparent"] = call.traceparent
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

        A value that the handler set stays: PagerDuty resolves an alert by the key that triggered
        it.
        """
        try:
            body = json.loads(request.read())
        except (ValueError, RecursionError):
            body = None
        if not isinstance(body, dict):
            raise Permanent(
                f"{named(self._spec, request)}: its key is sent in {self._spec.key_field!r}, and"
                " the body is not a JSON object: pass json={…}, or effect=None to send no key"
            )
        return json.dumps({self._spec.key_field: key, **body}).encode()
