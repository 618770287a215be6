"""Servers on this machine that answer byte by byte as a test says."""

import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from tests.waiting import DEADLINE

Script = Callable[[socket.socket], None]
OK = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"


def read_request(peer: socket.socket) -> bytes:
    """Returns the next request with its body, b"" at the end of the connection."""
    data = bytearray()
    while (end := data.find(b"\r\n\r\n")) < 0:
        if not _more(peer, data):
            return b""
    lengths = [n for n in data[:end].lower().split(b"\r\n") if n.startswith(b"content-length:")]
    size = end + 4 + (int(lengths[0].partition(b":")[2]) if lengths else 0)
    while len(data) < size:
        if not _more(peer, data):
            return b""
    return bytes(data)


def _more(peer: socket.socket, data: bytearray) -> bool:
    held = len(data)
    data += peer.recv(65536)
    return len(data) > held


def answers(*replies: bytes, closing: bool = False) -> Script:
    """Answers one request after the other, and then closes, or waits for the client to do so."""

    def script(peer: socket.socket) -> None:
        for reply in replies:
            if not read_request(peer):
                return
            peer.sendall(reply)
        if not closing:
            peer.recv(1)

    return script


class Server:
    """Runs one script for each connection; `ended` is released after each."""

    def __init__(self, listening: socket.socket, scripts: tuple[Script, ...]) -> None:
        self.port: int = listening.getsockname()[1]
        self.connections = 0
        self.errors: list[BaseException] = []
        self.ended = threading.Semaphore(0)
        self._listening = listening
        self._scripts = scripts

    def accept(self, context: ssl.SSLContext | None) -> None:
        for script in self._scripts:
            try:
                peer, _ = self._listening.accept()
            except OSError:
                return
            self.connections += 1
            try:
                peer.settimeout(DEADLINE)
                if context is not None:
                    peer = context.wrap_socket(peer, server_side=True)
                script(peer)
            except (ConnectionError, ssl.SSLError) as error:
                self.errors.append(error)
            finally:
                peer.close()
                self.ended.release()


@contextmanager
def serving(
    *scripts: Script, context: ssl.SSLContext | None = None, host: str = "127.0.0.1"
) -> Iterator[Server]:
    """A server that takes as many connections as there are scripts."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.create_server((host, 0), family=family) as listening:
        server = Server(listening, scripts)
        thread = threading.Thread(target=server.accept, args=(context,), daemon=True)
        thread.start()
        try:
            yield server
        finally:
            # It may wait for a connection that the test does not make.
            with suppress(OSError):
                listening.shutdown(socket.SHUT_RDWR)
            thread.join(15)
            assert not thread.is_alive()
