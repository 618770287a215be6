"""HTTP/1.1 messages on loopback, with their exact bytes."""

import asyncio
import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Self

import h11

from webhookctl.local.ports import LOOPBACK

CHUNK: Final = 256 * 1024
HEADER_LIMIT: Final = 64 * 1024
KEPT: Final = 30.0  # seconds without a request; ministack closes a connection after 75
# Methods whose requests omit Content-Length without a body.
BODILESS: Final = frozenset({b"GET", b"HEAD", b"OPTIONS", b"DELETE"})

Headers = tuple[tuple[bytes, bytes], ...]

# Headers of one connection (RFC 9110, 7.6.1). The receiver of a body handles `Expect`; its sender
# sets `Content-Length` and `Transfer-Encoding`.
HOP_BY_HOP: Final = frozenset(
    {
        b"connection",
        b"content-length",
        b"expect",
        b"keep-alive",
        b"proxy-authenticate",
        b"proxy-authorization",
        b"proxy-connection",
        b"te",
        b"trailer",
        b"transfer-encoding",
        b"upgrade",
    }
)


@dataclass(frozen=True, slots=True)
class Request:
    """A request with its body; headers keep their spelling and order."""

    method: bytes
    target: bytes
    headers: Headers
    body: bytes = b""

    def header(self, name: bytes) -> bytes:
        """Returns a header's values joined by commas, or nothing."""
        return b",".join(value for key, value in self.headers if key.lower() == name)

    @property
    def path(self) -> bytes:
        """The target without its query, which may hold a token."""
        return self.target.partition(b"?")[0]


@dataclass(frozen=True, slots=True)
class Response:
    """A response with its body."""

    status: int
    headers: Headers
    body: bytes = b""


def end_to_end(headers: Iterable[tuple[bytes, bytes]]) -> Headers:
    """Returns the end-to-end headers."""
    pairs = tuple(headers)
    named = {
        token.strip().lower()
        for key, value in pairs
        if key.lower() == b"connection"
        for token in value.split(b",")
    }
    return tuple((k, v) for k, v in pairs if k.lower() not in HOP_BY_HOP | named)


def framed(headers: Headers, body: bytes) -> list[tuple[bytes, bytes]]:
    """Returns the headers with the body's Content-Length."""
    return [*headers, (b"Content-Length", str(len(body)).encode())]


class Connections:
    """Connections to this machine, kept for the next request.

    A server may close one while we write; it is then unknown whether it processed the request. So
    a connection is used again only within a time in which ministack closes none.
    """

    def __init__(self) -> None:
        self._kept: dict[int, list[_Connection]] = {}

    async def send(self, port: int, request: Request) -> Response:
        """Sends a request; raises OSError without a complete response."""
        kept = self._kept.setdefault(port, [])
        connection = _fresh(kept) or await _Connection.open(port)
        try:
            response = await connection.exchange(request)
        except (h11.RemoteProtocolError, h11.LocalProtocolError) as error:
            connection.close()
            raise ConnectionError(str(error)) from error
        except BaseException:
            connection.close()
            raise
        if connection.lasts:
            kept.append(connection)
        else:
            connection.close()
        return response

    def close(self) -> None:
        """Closes the connections that no request uses."""
        for kept in self._kept.values():
            while kept:
                kept.pop().close()


class _Connection:
    """One connection, for one request after another."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._http = h11.Connection(h11.CLIENT, max_incomplete_event_size=HEADER_LIMIT)
        self._used = time.monotonic()

    @classmethod
    async def open(cls, port: int) -> Self:
        """Connects to a port of this machine."""
        return cls(*await asyncio.open_connection(LOOPBACK, port))

    @property
    def lasts(self) -> bool:
        """True if the server keeps it open after a response."""
        return self._http.our_state is h11.DONE and self._http.their_state is h11.DONE

    @property
    def fresh(self) -> bool:
        """True if the server certainly has not closed it since its last response."""
        return time.monotonic() - self._used < KEPT and not self._reader.at_eof()

    async def exchange(self, request: Request) -> Response:
        """Sends a request and returns its response; raises h11's errors, and OSError."""
        if self._http.our_state is h11.DONE:
            self._http.start_next_cycle()
        for event in _events(request):
            self._writer.write(self._http.send(event) or b"")
        await self._writer.drain()
        response = await _response(self._http, self._reader)
        self._used = time.monotonic()
        return response

    def close(self) -> None:
        """Closes it; may be called twice."""
        self._writer.close()


def _fresh(kept: list[_Connection]) -> _Connection | None:
    """Takes a connection that can be used; closes the others that it finds before."""
    while kept:
        connection = kept.pop()
        if connection.fresh:
            return connection
        connection.close()
    return None


def _events(request: Request) -> Iterable[h11.Event]:
    headers = framed(request.headers, request.body)
    if not request.body and request.method in BODILESS:
        headers.pop()
    yield h11.Request(method=request.method, target=request.target, headers=headers)
    yield h11.Data(data=request.body)
    yield h11.EndOfMessage()


async def _response(connection: h11.Connection, reader: asyncio.StreamReader) -> Response:
    status, body = 0, bytearray()
    headers: Headers = ()
    while True:
        event = connection.next_event()
        if event is h11.NEED_DATA:
            connection.receive_data(await reader.read(CHUNK))
        elif isinstance(event, h11.Response):
            status, headers = event.status_code, tuple(event.headers.raw_items())
        elif isinstance(event, h11.Data):
            body += event.data
        elif isinstance(event, h11.EndOfMessage):
            return Response(status, end_to_end(headers), bytes(body))
