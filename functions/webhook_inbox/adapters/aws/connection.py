"""One HTTP/1.1 connection that is kept between requests.

The standard library's `http.client` parses headers as those of an e-mail and takes five times the
CPU.
"""

import select
import socket
import ssl
from collections.abc import Mapping
from functools import cache
from time import monotonic, time
from typing import Final, NamedTuple, Self
from urllib.parse import SplitResult

USER_AGENT: Final = "webhook-inbox"
# The largest headers of a response, and by default the largest body, in bytes.
HEAD: Final = 64 * 1024
BODY: Final = 32 * 1024 * 1024
# Bytes that are read at a time.
CHUNK: Final = 64 * 1024
# A larger body is not copied behind the headers.
JOINED: Final = 64 * 1024
# Seconds. AWS's gateways forget a connection that was idle for 350, and do not tell its ends.
# https://docs.aws.amazon.com/vpc/latest/userguide/nat-gateway-troubleshooting.html
IDLE: Final = 300.0


class Limits(NamedTuple):
    """Seconds: for the TCP connection and again for the TLS handshake, and for an exchange."""

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
    is replaced before it is used, and so is one that was not used for five minutes. `read` limits a
    request and its response together, however slowly their bytes move; it does not include name
    resolution, nor `connect` a host's other addresses.
    """

    def __init__(self, host: str, port: int | None, *, tls: bool, limits: Limits) -> None:
        usual = 443 if tls else 80
        name = f"[{host}]" if ":" in host else host
        self.host = name if port in {None, usual} else f"{name}:{port}"
        self._address = (host, port or usual)
        self._tls = tls
        self._limits = limits
        self._socket: socket.socket | None = None
        # Bytes that were read and not used.
        self._buffer = bytearray()
        self._deadline = 0.0
        # Epoch seconds: other clocks may stop with the process.
        self._used = 0.0

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
            self._open()
            self._deadline = monotonic() + self._limits.read
            for part in [data + body] if len(body) <= JOINED else [data, body]:
                self._send(part)
            reply, keep = self._read(limit)
            self._used = time()
        except OSError:
            # Before ValueError, since the error of a certificate is both.
            raise
        except ValueError as error:
            raise BadReply("the response is not HTTP/1.1") from error
        finally:
            if not keep:
                self.close()
        return reply

    def close(self) -> None:
        """Closes the connection; the next request opens another one."""
        self._buffer.clear()
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def _open(self) -> None:
        if self._socket is not None:
            poll = select.poll()
            poll.register(self._socket, select.POLLIN)
            # Before a request, nothing is to be read but the end of the connection. Further bytes
            # would be taken for the response.
            if self._buffer or time() - self._used > IDLE or poll.poll(0):
                self.close()
        if self._socket is None:
            made = socket.create_connection(self._address, self._limits.connect)
            try:
                made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                if self._tls:
                    made = _context().wrap_socket(made, server_hostname=self._address[0])
            except BaseException:
                made.close()
                raise
            self._socket = made

    def _ready(self) -> socket.socket:
        """Returns the socket, for an operation in the time that is left."""
        left = self._deadline - monotonic()
        if left <= 0 or self._socket is None:
            raise TimeoutError("timed out")
        self._socket.settimeout(left)
        return self._socket

    def _send(self, data: bytes) -> None:
        # Not by sendall: over TLS, its time-out holds for each 16 KB.
        view = memoryview(data)
        while view:
            view = view[self._ready().send(view) :]

    def _read(self, limit: int) -> tuple[Reply, bool]:
        """Returns the response, and whether the connection stays open."""
        status = 100
        while 100 <= status < 200:
            first, *lines = self._until(b"\r\n\r\n").decode("latin-1").split("\r\n")
            version, code, *_ = [*first.split(" ", 2), ""]
            if version not in {"HTTP/1.1", "HTTP/1.0"} or len(code) != 3:
                raise BadReply("the response is not HTTP/1.1")
            status, headers = int(code), _headers(lines)
        keep = version == "HTTP/1.1" and headers.get("connection", "").lower() != "close"
        if status in {204, 304}:
            body = b""
        elif "transfer-encoding" in headers:
            body = self._chunks(limit)
        elif "content-length" in headers:
            body = self._exactly(int(headers["content-length"]), limit)
        else:
            keep, body = False, self._rest(limit)
        return Reply(status, headers, body), keep

    def _chunks(self, limit: int) -> bytes:
        chunks: list[bytes] = []
        while size := int(self._until(b"\r\n").partition(b";")[0], 16):
            chunks.append(self._exactly(size, limit))
            limit -= size
            if self._until(b"\r\n"):
                raise BadReply("the response is not HTTP/1.1")
        while self._until(b"\r\n"):
            pass  # a trailer, which no service needs
        return b"".join(chunks)

    def _rest(self, limit: int) -> bytes:
        while len(self._buffer) <= limit:
            if not self._receive():
                return bytes(self._buffer)
        raise BadReply("the response is too large")

    def _until(self, mark: bytes) -> bytes:
        while (end := self._buffer.find(mark)) < 0:
            if len(self._buffer) > HEAD:
                raise BadReply("the response is too large")
            self._more()
        found = bytes(self._buffer[:end])
        del self._buffer[: end + len(mark)]
        return found

    def _exactly(self, size: int, limit: int) -> bytes:
        if not 0 <= size <= limit:
            raise BadReply("the response is too large")
        while len(self._buffer) < size:
            self._more()
        found = bytes(self._buffer[:size])
        del self._buffer[:size]
        return found

    def _more(self) -> None:
        if not self._receive():
            raise BadReply("the connection was closed before the end of the response")

    def _receive(self) -> bool:
        data = self._ready().recv(CHUNK)
        self._buffer += data
        return bool(data)


def _headers(lines: list[str]) -> dict[str, str]:
    headers: dict[str, str] = {}
    for line in lines:
        name, _, value = line.partition(":")
        held = headers.setdefault(name.lower(), value.strip())
        if held != value.strip() and name.lower() == "content-length":
            raise BadReply("the response has two lengths")
    return headers


def target(url: SplitResult) -> str:
    """Returns the path and the query of a URL, as a request has them."""
    return f"{url.path or '/'}{'?' if url.query else ''}{url.query}"


@cache
def _context() -> ssl.SSLContext:
    # One for all connections: it loads 140 certificates.
    return ssl.create_default_context()
