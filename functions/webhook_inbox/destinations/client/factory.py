"""Builds the clients of `ctx.http` on first use."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from webhook_inbox.domain.ports import Clock

if TYPE_CHECKING:
    import httpx

    from webhook_inbox.destinations.client.attempt import OutboundCall
    from webhook_inbox.destinations.client.client import DestinationClient
    from webhook_inbox.domain.manifest import DestinationSpec


class HttpClients:
    """Builds the client of a destination.

    Connections are not reused: Lambda may freeze a worker between two calls, and after a POST on
    a connection that broke meanwhile it is unknown whether the request arrived.

    Args:
        clock: the time.
        transport: sends the requests; by default over sockets.
    """

    def __init__(self, *, clock: Clock, transport: httpx.BaseTransport | None = None) -> None:
        self._clock = clock
        self._given = transport

    def __call__(self, spec: DestinationSpec, call: OutboundCall) -> DestinationClient:
        """Returns the client of a destination for one attempt."""
        # The import takes 100 ms of CPU; handlers without a destination avoid it.
        from webhook_inbox.destinations.client.client import DestinationClient  # noqa: PLC0415

        return DestinationClient(spec, call, clock=self._clock, transport=self._transport)

    @cached_property
    def _transport(self) -> httpx.BaseTransport:
        import httpx  # noqa: PLC0415 - as above

        # Loading the certificates takes milliseconds: one transport serves all destinations.
        return self._given or httpx.HTTPTransport(limits=httpx.Limits(max_keepalive_connections=0))
