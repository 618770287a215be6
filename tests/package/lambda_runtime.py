"""Lambda's runtime around one function: AWS's runtime client under a stub of the Runtime API.

https://docs.aws.amazon.com/lambda/latest/dg/runtimes-api.html
"""

import json
import queue
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from uuid import uuid4

from tests.waiting import DEADLINE

PREFIX = "/2018-06-01/runtime/"
ERROR_TYPE = "Lambda-Runtime-Function-Error-Type"
# Generous: each step ends as soon as it can.


@dataclass(frozen=True)
class Outcome:
    """The report of a function: its response, or an error with the type in the header."""

    kind: str  # response, error, init-error
    body: Any
    error_type: str | None


@dataclass
class RuntimeApi:
    """The stub: hands out invocations, one at a time, and keeps what is reported."""

    timeout: int  # seconds, as configured for the function
    events: "queue.Queue[tuple[str, bytes]]" = field(default_factory=queue.Queue)
    outcomes: "queue.Queue[tuple[str, Outcome]]" = field(default_factory=queue.Queue)
    closed: threading.Event = field(default_factory=threading.Event)

    def next(self) -> tuple[str, bytes] | None:
        while not self.closed.is_set():
            try:
                return self.events.get(timeout=0.05)
            except queue.Empty:
                continue
        return None

    def headers(self, request_id: str) -> dict[str, str]:
        return {
            "Lambda-Runtime-Aws-Request-Id": request_id,
            "Lambda-Runtime-Deadline-Ms": str(int((time.time() + self.timeout) * 1000)),
            "Lambda-Runtime-Invoked-Function-Arn": (
                "arn:aws:lambda:us-east-1:123456789012:function:inbox"
            ),
            "Lambda-Runtime-Trace-Id": "Root=1-5bef4de7-ad49b0e87f6ef6c87fc2e700;Sampled=0",
            "Content-Type": "application/json",
        }


class _Requests(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    api: RuntimeApi

    def handle(self) -> None:
        # A function is killed while its runtime waits for an invocation.
        with suppress(ConnectionResetError, BrokenPipeError):
            super().handle()

    def do_GET(self) -> None:
        assert self.path == f"{PREFIX}invocation/next"
        given = self.api.next()
        if given is None:
            self.close_connection = True
            return
        request_id, body = given
        self._answer(200, self.api.headers(request_id), body)

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        request_id, kind = _reported(self.path)
        self.api.outcomes.put((request_id, Outcome(kind, body, self.headers.get(ERROR_TYPE))))
        self._answer(202, {"Content-Type": "application/json"}, b'{"status":"OK"}')

    def log_message(self, *_: object) -> None:
        pass

    def _answer(self, status: int, headers: Mapping[str, str], body: bytes) -> None:
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)


def _reported(path: str) -> tuple[str, str]:
    parts = path.removeprefix(PREFIX).split("/")
    if parts == ["init", "error"]:
        return "", "init-error"
    assert parts[0] == "invocation", path
    assert parts[2] in ("response", "error"), path
    return parts[1], parts[2]


@dataclass
class RunningFunction:
    """A function whose runtime waits for invocations."""

    api: RuntimeApi
    process: subprocess.Popen[bytes]
    output: Path

    def invoke(self, event: Any) -> Outcome:
        request_id = str(uuid4())
        self.api.events.put((request_id, json.dumps(event).encode()))
        answered, outcome = self._outcome()
        assert answered == request_id, outcome
        return outcome

    def answer(self, event: Any) -> Any:
        """Returns the response to an event, which must succeed."""
        outcome = self.invoke(event)
        assert outcome.kind == "response", (outcome, self.output.read_text())
        return outcome.body

    def init_error(self) -> Outcome:
        """Returns the error of a function that cannot start."""
        return self._outcome()[1]

    def _outcome(self) -> tuple[str, Outcome]:
        end = time.monotonic() + DEADLINE
        while time.monotonic() < end:
            try:
                return self.api.outcomes.get(timeout=0.1)
            except queue.Empty:
                assert self.process.poll() is None, self.output.read_text()
        raise AssertionError(f"no answer in {DEADLINE:.0f} s: {self.output.read_text()}")


@contextmanager
def running(
    python: str,
    *,
    handler: str,
    task: Path,
    runtime: Path,
    variables: Mapping[str, str],
    timeout: int,
    output: Path,
) -> Iterator[RunningFunction]:
    """Starts a function as Lambda does, with nothing of this machine but the interpreter.

    Args:
        python: the interpreter; `-S` leaves its site-packages out.
        handler: the handler's name, as configured.
        task: the unzipped bundle, /var/task in Lambda: working directory and first on the path.
        runtime: the runtime client and boto3, /var/runtime in Lambda, after the bundle on the path.
        variables: the function's own environment variables.
        timeout: the function's timeout in seconds.
        output: receives what the function writes.
    """
    api = RuntimeApi(timeout)
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Requests", (_Requests,), {"api": api}))
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    with output.open("ab") as written:
        process = subprocess.Popen(
            [python, "-S", "-m", "awslambdaric", handler],
            cwd=task,
            env={
                "AWS_EXECUTION_ENV": "AWS_Lambda_python3.13",
                "AWS_LAMBDA_FUNCTION_MEMORY_SIZE": "512",
                "AWS_LAMBDA_FUNCTION_NAME": "inbox",
                "AWS_LAMBDA_FUNCTION_VERSION": "$LATEST",
                "AWS_LAMBDA_INITIALIZATION_TYPE": "on-demand",
                "AWS_LAMBDA_LOG_FORMAT": "JSON",
                "AWS_LAMBDA_LOG_GROUP_NAME": "/aws/lambda/inbox",
                "AWS_LAMBDA_LOG_LEVEL": "INFO",
                "AWS_LAMBDA_LOG_STREAM_NAME": "2026/11/21/[$LATEST]0123456789abcdef",
                "AWS_LAMBDA_RUNTIME_API": f"127.0.0.1:{server.server_address[1]}",
                "HOME": "/home/sbx_user1051",
                "LAMBDA_RUNTIME_DIR": str(runtime),
                "LAMBDA_TASK_ROOT": str(task),
                "LANG": "en_US.UTF-8",
                "PATH": "/usr/local/bin:/usr/bin:/bin",
                # Lambda's /var/task is read-only.
                "PYTHONDONTWRITEBYTECODE": "1",
                "PYTHONPATH": str(runtime),
                "TZ": ":UTC",
                "_HANDLER": handler,
                **variables,
            },
            stdin=subprocess.DEVNULL,
            stdout=written,
            stderr=subprocess.STDOUT,
        )
    try:
        yield RunningFunction(api, process, output)
    finally:
        process.kill()
        process.wait()
        api.closed.set()
        server.shutdown()
        server.server_close()
