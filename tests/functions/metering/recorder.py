"""A loopback proxy that shows what the functions send to AWS, whichever client they use."""

import json
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit

from tests.waiting import DEADLINE

# The headers of one connection, which a proxy does not pass on.
_HOP: Final = frozenset({"connection", "content-length", "host", "keep-alive", "transfer-encoding"})
# The scope of a signature: Credential=KEY/DATE/REGION/SERVICE/aws4_request
_SCOPE: Final = re.compile(r"Credential=[^/]+/\d{8}/[^/]+/([^/]+)/aws4_request")
_RPC: Final = re.compile(r"/service/[^/]+/operation/(\w+)")


@dataclass(frozen=True, slots=True)
class Exchange:
    """An HTTP request to AWS and its answer.

    Attributes:
        service: the service of the signature's scope, such as `dynamodb` or `monitoring`.
        operation: AWS's name of the operation; for S3 the HTTP method.
        sent: the request's body.
        status: the answer's HTTP status.
        answer: the answer's body.
    """

    service: str
    operation: str
    sent: bytes
    status: int = 0
    answer: bytes = b""

    @property
    def name(self) -> str:
        """The service and the operation."""
        return f"{self.service}:{self.operation}"

    @property
    def parameters(self) -> dict[str, Any]:
        """The parameters of a JSON request."""
        return dict(json.loads(self.sent))

    @property
    def result(self) -> dict[str, Any]:
        """The answer of a JSON request."""
        return dict(json.loads(self.answer))


# Makes the request of an exchange, and returns it with the answer.
Forward = Callable[[], Exchange]
Watch = Callable[[Exchange, Forward], Exchange]


@contextmanager
def recording(upstream: str, watch: Watch) -> Iterator[str]:
    """Passes requests on to an endpoint through `watch`; yields the URL to send them to."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        # An answer is one packet: two would wait for each other's acknowledgement.
        wbufsize = -1

        def pass_on(self) -> None:
            _pass_on(self, upstream, watch)

        do_DELETE = do_GET = do_HEAD = do_POST = do_PUT = pass_on  # noqa: N815 - the base's names

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()
        thread.join()


def _pass_on(handler: BaseHTTPRequestHandler, upstream: str, watch: Watch) -> None:
    sent = handler.rfile.read(int(handler.headers.get("Content-Length") or 0))
    service, operation = _named(handler, sent)
    headers: list[tuple[str, str]] = []

    def forward() -> Exchange:
        status, answer = _ask(handler, upstream, sent, headers)
        return Exchange(service, operation, sent, status, answer)

    done = watch(Exchange(service, operation, sent), forward)
    handler.send_response(done.status)
    for name, value in headers:
        handler.send_header(name, value)
    handler.send_header("Content-Length", str(len(done.answer)))
    # A client that ends with its test would leave a connection open.
    handler.send_header("Connection", "close")
    handler.end_headers()
    handler.wfile.write(done.answer if handler.command != "HEAD" else b"")
    handler.wfile.flush()


def _ask(
    handler: BaseHTTPRequestHandler, upstream: str, sent: bytes, headers: list[tuple[str, str]]
) -> tuple[int, bytes]:
    passed = {name: v for name, v in handler.headers.items() if name.lower() not in _HOP}
    connection = HTTPConnection(urlsplit(upstream).netloc, timeout=DEADLINE)
    connection.request(handler.command, handler.path, sent, passed)
    response = connection.getresponse()
    answer = response.read()
    connection.close()
    headers += [(name, v) for name, v in response.getheaders() if name.lower() not in _HOP]
    return response.status, answer


def _named(handler: BaseHTTPRequestHandler, sent: bytes) -> tuple[str, str]:
    """Returns the service and the operation of a request, in any of AWS's protocols."""
    scope = _SCOPE.search(handler.headers.get("Authorization", ""))
    assert scope is not None, f"{handler.command} {handler.path} is not signed"
    target, rpc = handler.headers.get("X-Amz-Target"), _RPC.match(handler.path)
    if target or rpc:
        return scope[1], target.rpartition(".")[2] if target else rpc[1]  # type: ignore[index]
    actions = parse_qs(sent.decode("latin-1")).get("Action", [handler.command])
    return scope[1], actions[0]
