"""HTTP/1.1 messages on loopback, with their exact bytes."""

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

import h11

from webhookctl.local.ports import LOOPBACK

CHUNK: Final = 256 * 1024
HEADER_LIMIT: Final = 64 * 1024
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


async def send(port: int, request: Request) -> Response:
    """Sends a request on a new connection; raises OSError without a complete response.

    A persistent connection may close while we write, so that it is unknown whether the request was
    processed.
    """
    reader, writer = await asyncio.open_connection(LOOPBACK, port)
    try:
        connection = h11.Connection(h11.CLIENT, max_incomplete_event_size=HEADER_LIMIT)
        for event in _events(request):
            writer.write(connection.send(event) or b"")
        await writer.drain()
        return await _response(connection, reader)
    except (h11.RemoteProtocolError, h11.LocalProtocolError) as error:
        raise ConnectionError(str(error)) from error
    finally:
        writer.close()


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
