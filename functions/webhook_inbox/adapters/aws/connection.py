"""One HTTP/1.1 connection that is kept between requests.

The standard library's `http.client` parses headers as those of an e-mail and takes five times the
CPU.
"""

import select
import socket
import ssl
from collections.abc import Mapping
from functools import cache
from io import BufferedReader
from typing import Final, NamedTuple, Self
from urllib.parse import SplitResult

# The bytes of a line of a response, its headers, and by default the bytes of its body.
LINE: Final = 16 * 1024
HEADERS: Final = 100
BODY: Final = 32 * 1024 * 1024
# A larger body is not copied behind the headers.
JOINED: Final = 64 * 1024


class Limits(NamedTuple):
    """Seconds: for the TCP connection and again for the TLS handshake, and for each read."""

    connect: float
    read: float


class Reply(NamedTuple):
    """A response; the names of its headers are in lower case."""

    status: int
    headers: dict[str, str]
    body: bytes


class BadReply(OSError):
    """The response is not HTTP/1.1, is cut off, or is too large."""


class Connection:
    """A connection to one server, for one request at a time; opened with the first one.

    Servers close idle connections, and Lambda stops a process for minutes, so a closed connection
    is replaced before it is used. The limits hold for each wait, not for a response that arrives
    byte by byte.
    """

    def __init__(self, host: str, port: int | None, *, tls: bool, limits: Limits) -> None:
        usual = 443 if tls else 80
        self.host = host if port in {None, usual} else f"{host}:{port}"
        self._address = (host, port or usual)
        self._tls = tls
        self._limits = limits
        self._socket: socket.socket | None = None
        self._reader: BufferedReader

    @classmethod
    def to(cls, url: SplitResult, limits: Limits) -> Self:
        """Returns a connection to the server of an http or https URL."""
        return cls(url.hostname or "", url.port, tls=url.scheme != "http", limits=limits)

    def exchange(
        self, method: str, path: str, headers: Mapping[str, str], body: bytes, *, limit: int = BODY
    ) -> Reply:
        """Sends a request, once, and returns the response.

        Args:
            method: the HTTP method, not HEAD.
            path: the encoded path with its query.
            headers: all headers but Host and Content-Length.
            body: the body.
            limit: the largest body that is accepted, in bytes.

        Raises:
            OSError: the server cannot be reached, its certificate is not valid, it closed the
                connection or did not answer in time; BadReply.
        """
        lines = "".join([f"{name}: {value}\r\n" for name, value in headers.items()])
        start = f"{method} {path} HTTP/1.1\r\nhost: {self.host}\r\n{lines}"
        data = f"{start}content-length: {len(body)}\r\n\r\n".encode("latin-1")
        keep = False
        try:
            connection = self._opened()
            connection.sendall(data + body if len(body) <= JOINED else data)
            if len(body) > JOINED:
                connection.sendall(body)
            reply, keep = self._read(limit)
        except ValueError as error:
            raise BadReply("the response is not HTTP/1.1") from error
        finally:
            if not keep:
                self.close()
        return reply

    def close(self) -> None:
        """Closes the connection; the next request opens another one."""
        if self._socket is not None:
            self._reader.close()
            self._socket.close()
            self._socket = None

    def _opened(self) -> socket.socket:
        if self._socket is not None:
            poll = select.poll()
            poll.register(self._socket, select.POLLIN)
            # Before a request, nothing is to be read but the end of the connection.
            if poll.poll(0):
                self.close()
        if self._socket is None:
            made = socket.create_connection(self._address, self._limits.connect)
            try:
                made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                if self._tls:
                    made = _context().wrap_socket(made, server_hostname=self._address[0])
                made.settimeout(self._limits.read)
            except BaseException:
                made.close()
                raise
            self._socket, self._reader = made, made.makefile("rb")
        return self._socket

    def _read(self, limit: int) -> tuple[Reply, bool]:
        """Returns the response, and whether the connection stays open."""
        status = 100
        while 100 <= status < 200:
            version, code, *_ = [*self._line().split(b" ", 2), b""]
            if version not in {b"HTTP/1.1", b"HTTP/1.0"} or len(code) != 3:
                raise BadReply("the response is not HTTP/1.1")
            status, headers = int(code), self._headers()
        keep = version == b"HTTP/1.1" and headers.get("connection", "").lower() != "close"
        if status in {204, 304}:
            body = b""
        elif "transfer-encoding" in headers:
            body = b""
            while size := int(self._line().partition(b";")[0], 16):
                body += self._exactly(size, limit - len(body))
                self._line()
            self._headers()
        elif "content-length" in headers:
            body = self._exactly(int(headers["content-length"]), limit)
        else:
            keep, body = False, self._reader.read(limit + 1)
        if len(body) > limit:
            raise BadReply("the response is too large")
        return Reply(status, headers, body), keep

    def _headers(self) -> dict[str, str]:
        headers: dict[str, str] = {}
        while line := self._line():
            name, _, value = line.decode("latin-1").partition(":")
            headers[name.lower()] = value.strip()
            if len(headers) > HEADERS:
                raise BadReply("the response has too many headers")
        return headers

    def _line(self) -> bytes:
        line = self._reader.readline(LINE)
        if not line.endswith(b"\n"):
            raise BadReply("the response is cut off" if line else "the connection was closed")
        return line.rstrip(b"\r\n")

    def _exactly(self, size: int, limit: int) -> bytes:
        if not 0 <= size <= limit:
            raise BadReply("the response is too large")
        body = self._reader.read(size)
        if len(body) < size:
            raise BadReply("the response is cut off")
        return body


@cache
def _context() -> ssl.SSLContext:
    # One for all connections: it loads 140 certificates.
    return ssl.create_default_context()
