"""HTTP/1.1 on loopback, exact to the byte: messages, and one request on one connection."""

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

import h11

from webhookctl.local.ports import LOOPBACK

CHUNK: Final = 256 * 1024
HEADER_LIMIT: Final = 64 * 1024
# Without a body they do not tell its length either.
BODILESS: Final = frozenset({b"GET", b"HEAD", b"OPTIONS", b"DELETE"})

Headers = tuple[tuple[bytes, bytes], ...]

# RFC 9110, 7.6.1: they speak of one connection and end with it. `Expect` is answered by
# whoever receives the body, `Content-Length` and `Transfer-Encoding` by whoever sends it.
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
    """A request with its whole body; the headers as they were spelt and ordered."""

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
    """A response with its whole body."""

    status: int
    headers: Headers
    body: bytes = b""


def end_to_end(headers: Iterable[tuple[bytes, bytes]]) -> Headers:
    """Returns the headers that concern more than one connection."""
    pairs = tuple(headers)
    named = {
        token.strip().lower()
        for key, value in pairs
        if key.lower() == b"connection"
        for token in value.split(b",")
    }
    return tuple((k, v) for k, v in pairs if k.lower() not in HOP_BY_HOP | named)


def framed(headers: Headers, body: bytes) -> list[tuple[bytes, bytes]]:
    """Returns the headers that go with this body on our own connection."""
    return [*headers, (b"Content-Length", str(len(body)).encode())]


async def send(port: int, request: Request) -> Response:
    """Sends one request on a connection of its own and returns the answer.

    A kept connection could be closed under us just as we write, and then nobody knows whether
    the request was taken. Raises OSError where nobody answers in full.
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
