"""The sink, a downstream system with idempotency keys for the local runtime.

The first request with an `Idempotency-Key`, or with a `dedup_key` in its body as at PagerDuty, is
an effect: 201, recorded in a journal that survives a restart. Later requests with that key get 200
and the first answer. A user or a test can thus count how often each effect happened: GET / and
GET /effects list them, as a page for a browser and as JSON for all other clients.
"""

import argparse
import json
import sys
import threading
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final

from webhookctl.display.untrusted import printable
from webhookctl.errors import CommandError
from webhookctl.local.http.web_pages import refusal
from webhookctl.local.ports import LOOPBACK, require_free
from webhookctl.local.processes.sink_page import POLICY, page

DEFAULT_PORT: Final = 8788
DEFAULT_JOURNAL: Final = Path(".local/sink.jsonl")
LARGEST_BODY: Final = 8 * 1024 * 1024
# Deeper values exceed the recursion limit where the page indents them.
DEEPEST: Final = 100
SHOWN: Final = 120  # characters of a body on the terminal


def _say(line: str) -> None:
    sys.stdout.write(f"{printable(line)}\n")
    sys.stdout.flush()


def _parsed(body: bytes) -> Any:
    """Returns the value of JSON; raises ValueError or RecursionError."""
    value = json.loads(body)
    level = [value]
    for _ in range(DEEPEST):
        level = [part for each in level for part in _parts(each)]
    if level:
        raise ValueError("the body is nested too deeply")
    return value


def _parts(value: Any) -> Iterable[Any]:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()


class Effects:
    """The effects by idempotency key; each request is journaled before its answer."""

    def __init__(self, journal: Path) -> None:
        """Reads the journal; creates it where missing."""
        self._journal = journal
        self._lock = threading.Lock()
        self._effects: dict[str, dict[str, Any]] = {}
        journal.parent.mkdir(parents=True, exist_ok=True)
        for line in _whole_lines(journal):
            self._remember(json.loads(line))

    def perform(
        self, key: str, path: str, body: Any, *, method: str = "POST"
    ) -> tuple[bool, dict[str, Any]]:
        """Records a request; returns whether it is the first with its key, and the answer."""
        with self._lock:
            first = key not in self._effects
            entry: dict[str, Any] = {"key": key, "at": datetime.now(UTC).isoformat()}
            if first:
                number = len(self._effects) + 1
                entry |= {"id": f"effect-{number}", "method": method, "path": path, "body": body}
            with self._journal.open("a") as file:
                file.write(json.dumps(entry) + "\n")
            self._remember(entry)
            return first, {"id": self._effects[key]["id"], "key": key, "replayed": not first}

    def all(self) -> dict[str, dict[str, Any]]:
        """Returns method, path, body, number of requests, first and last time by key."""
        with self._lock:
            return {key: dict(effect) for key, effect in self._effects.items()}

    def reset(self) -> None:
        """Deletes all effects."""
        with self._lock:
            self._effects.clear()
            self._journal.write_text("")

    def _remember(self, entry: dict[str, Any]) -> None:
        at = entry["at"]
        if "id" in entry:
            seen = {name: entry[name] for name in ("id", "method", "path", "body")}
            self._effects[entry["key"]] = {**seen, "requests": 0, "first_at": at}
        effect = self._effects[entry["key"]]
        effect["requests"] += 1
        effect["last_at"] = at


def _whole_lines(journal: Path) -> list[bytes]:
    """Returns a file's lines, after removing one that a killed process left unfinished."""
    with journal.open("a+b") as file:
        file.seek(0)
        content = file.read()
        file.truncate(content.rfind(b"\n") + 1)
    return content.split(b"\n")[:-1]


class Sink(ThreadingHTTPServer):
    """The sink's HTTP server, for hundreds of concurrent handlers."""

    daemon_threads = True
    request_queue_size = 512

    def __init__(self, port: int, journal: Path, tell: Callable[[str], None] = _say) -> None:
        """Listens on a loopback port, 0 for a free one; `tell` receives a line per request."""
        self.effects = Effects(journal)
        self.tell = tell
        super().__init__((LOOPBACK, port), _Handler)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1  # one packet per answer: two would wait for the client's delayed ACK
    server: Sink

    def parse_request(self) -> bool:
        """Reads a request's head; refuses it where a web page may have sent it."""
        if not super().parse_request():
            return False
        why = refusal(self.headers.items(), port=self.server.server_port)
        if why:
            # Its body stays unread, so the connection cannot go on.
            self.close_connection = True
            self._answer(HTTPStatus.FORBIDDEN, {"error": why})
        return not why

    def do_POST(self) -> None:
        """Performs an effect once."""
        try:
            body = _parsed(self._read())
        except (ValueError, RecursionError):
            error = f"the body must be JSON with at most {DEEPEST} levels"
            self._answer(HTTPStatus.BAD_REQUEST, {"error": error})
            return
        field = str(body.get("dedup_key", "")) if isinstance(body, dict) else ""
        key = self.headers.get("Idempotency-Key", "") or field
        if not key:
            self._answer(HTTPStatus.BAD_REQUEST, {"error": "Idempotency-Key is missing"})
            return
        first, answer = self.server.effects.perform(key, self.path, body, method=self.command)
        self._tell(key, body, first=first)
        self._answer(HTTPStatus.CREATED if first else HTTPStatus.OK, answer)

    do_PUT = do_PATCH = do_POST  # noqa: N815 - http.server's names

    def do_GET(self) -> None:
        """Lists the effects: HTML for a browser, JSON for all others."""
        if self.path not in {"/", "/effects"}:
            self._answer(HTTPStatus.NOT_FOUND, {"error": "GET /effects, or POST anywhere"})
        elif "text/html" in self.headers.get("Accept", ""):
            self._send(HTTPStatus.OK, "text/html; charset=utf-8", page(self.server.effects.all()))
        else:
            self._answer(HTTPStatus.OK, self.server.effects.all())

    def do_DELETE(self) -> None:
        """Deletes the effects."""
        if self.path == "/effects":
            self.server.effects.reset()
            self._answer(HTTPStatus.OK, {})
        else:
            self._answer(HTTPStatus.NOT_FOUND, {"error": "DELETE /effects"})

    def _read(self) -> bytes:
        try:
            length = int(self.headers.get("Content-Length", ""))
        except ValueError as error:
            self.close_connection = True
            raise ValueError("Content-Length is missing") from error
        if not 0 <= length <= LARGEST_BODY:
            self.close_connection = True
            raise ValueError("the body is too large")
        return self.rfile.read(length)

    def _answer(self, status: HTTPStatus, content: dict[str, Any]) -> None:
        self._send(status, "application/json", json.dumps(content))

    def _send(self, status: HTTPStatus, media_type: str, text: str) -> None:
        # A body may contain a lone surrogate, which has no encoding.
        body = text.encode(errors="replace")
        self.send_response(status)
        self.send_header("Content-Type", media_type)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Content-Security-Policy", POLICY)
        self.send_header("X-Content-Type-Options", "nosniff")
        self.end_headers()
        self.wfile.write(body)

    def _tell(self, key: str, body: Any, *, first: bool) -> None:
        what = "effect  " if first else "replayed"
        shown = json.dumps(body)
        if len(shown) > SHOWN:
            shown = f"{shown[:SHOWN]}…"
        time = f"{datetime.now(UTC).astimezone():%H:%M:%S}"
        self.server.tell(f"{time} sink   {what} {self.command} {self.path} {shown} key={key}")

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - http.server's name
        """Suppresses the default log: the sink prints one line per effect."""


def main() -> None:
    """Serves until the process is stopped."""
    parser = argparse.ArgumentParser(description="Run a sink with idempotency keys.")
    parser.add_argument("--port", type=int, default=DEFAULT_PORT)
    parser.add_argument("--journal", type=Path, default=DEFAULT_JOURNAL)
    options = parser.parse_args()
    try:
        require_free(options.port, purpose="the sink", option="--port")
    except CommandError as error:
        sys.exit(f"sink: {error}")
    with Sink(options.port, options.journal) as server:
        server.serve_forever()


if __name__ == "__main__":
    main()
