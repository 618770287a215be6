"""A downstream that misbehaves on a script: `python sink.py PORT DIRECTORY`.

A posted body may have a `script`: the behavior for the first requests of that event, in order. The
file `mood` sets the behavior for all requests below a path. The file `journal` has one line a
request, written before the answer, so that the sink can be killed at any time.

    ok        does it
    500, 429  refuses: an error, or too many requests
    422       refuses for good
    done500   does it, and answers with an error
    stall     does it, and does not answer in time
    drop      does it, and hangs up
    refuse    hangs up

Below `/keyed` it honours idempotency keys; elsewhere it does what it is told as often as it is.
"""

import json
import os
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

DOES_IT = frozenset({"ok", "done500", "stall", "drop"})
STATUS = {"ok": 201, "500": 500, "429": 429, "422": 422, "done500": 500, "stall": 201}
# Longer than any client of the test waits.
STALL = 6.0


class Sink(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 256

    def __init__(self, port: int, directory: Path) -> None:
        self.lock = threading.Lock()
        self.mood = directory / "mood"
        self.journal = (directory / "journal").open("a+")
        self.requests: dict[str, int] = {}
        self.keys: set[str] = set()
        self.journal.seek(0)
        for line in self.journal:
            self._remember(json.loads(line))
        super().__init__(("127.0.0.1", port), Handler)

    def take(self, path: str, key: str, body: dict[str, Any]) -> str:
        """Notes a request, and does what it asks for if it does so at all."""
        with self.lock:
            place = f"{path} {body['event']}"
            count = self.requests.get(place, 0)
            script = body.get("script", [])
            behaviour = script[count] if count < len(script) else self._mood(path)
            again = path.startswith("/keyed") and key in self.keys
            entry = {
                "at": time.time(),
                "path": path,
                "key": key,
                "body": body,
                "behaviour": behaviour,
                "did": behaviour in DOES_IT and not again,
            }
            self._remember(entry)
            self.journal.write(json.dumps(entry) + "\n")
            self.journal.flush()
            os.fsync(self.journal.fileno())
            return behaviour

    def _mood(self, path: str) -> str:
        moods = json.loads(self.mood.read_text()) if self.mood.exists() else {}
        return next((mood for start, mood in moods.items() if path.startswith(start)), "ok")

    def _remember(self, entry: dict[str, Any]) -> None:
        place = f"{entry['path']} {entry['body']['event']}"
        self.requests[place] = self.requests.get(place, 0) + 1
        if entry["did"]:
            self.keys.add(entry["key"])


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Sink

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        key = self.headers.get("Idempotency-Key", "")
        behaviour = self.server.take(self.path, key, body)
        if behaviour == "stall":
            time.sleep(STALL)
        if behaviour not in STATUS:
            self.close_connection = True
            self.connection.close()
            return
        content = json.dumps({"event": body["event"]}).encode()
        self.send_response(STATUS[behaviour])
        if behaviour == "429":
            self.send_header("Retry-After", "1")
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - http.server's name
        pass


if __name__ == "__main__":
    Sink(int(sys.argv[1]), Path(sys.argv[2])).serve_forever()
