"""The destination of the incidents: it counts each order that it makes, and can be down."""

import json
import threading
from collections import Counter
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self


class Erp:
    """An HTTP server on loopback that makes an order once for each idempotency key."""

    def __init__(self) -> None:
        self.down = False
        self.refused = 0
        self.orders: Counter[str] = Counter()
        self._keys: set[str] = set()
        self._lock = threading.Lock()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def order(self, key: str, title: str) -> HTTPStatus:
        """Makes an order; the key of an earlier one makes no second."""
        with self._lock:
            if self.down:
                self.refused += 1
                return HTTPStatus.SERVICE_UNAVAILABLE
            if key not in self._keys:
                self._keys.add(key)
                self.orders[title] += 1
            return HTTPStatus.CREATED

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        erp = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                self.send_response(erp.order(self.headers["Idempotency-Key"], body["title"]))
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_: Any) -> None:
                """Prints nothing."""

        return Handler
