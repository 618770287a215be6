"""Runs ministack for the holders of one session's credentials.

ministack lets any caller do anything, without credentials and with CORS for every origin: a web
page could create a function and run it as the developer. The guard is part of its process, since
a proxy in front would leave its own port open.
"""

import contextlib
import json
import os
import queue
import threading
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from hmac import compare_digest
from typing import Any, Final

from webhookctl.local.http.web_pages import refusal

# The header of the local API, whose requests have the provider's `Host` and no AWS signature.
SESSION: Final = "x-webhook-inbox-session"
TOKEN: Final = "x-amz-security-token"  # noqa: S105 - a header's name

Scope = Mapping[str, Any]
Receive = Callable[[], Awaitable[dict[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]


class SessionGuard:
    """Passes the session's requests to an ASGI application, and answers 403 to all others."""

    def __init__(self, app: App, *, port: int, token: str) -> None:
        self._app = app
        self._port = port
        self._token = token.encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """See ASGI."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        headers = [(k.decode("latin-1").lower(), v.decode("latin-1")) for k, v in scope["headers"]]
        why = self._refusal(headers)
        if why:
            await _refuse(scope, receive, send, why)
            return
        kept = [(k, v) for k, v in scope["headers"] if k.decode("latin-1").lower() != SESSION]
        await self._app({**scope, "headers": kept}, receive, send)

    def _refusal(self, headers: list[tuple[str, str]]) -> str:
        if self._presented(headers, SESSION):
            return ""
        if not self._presented(headers, TOKEN):
            return "use the credentials of the running session, which are in its state file"
        return refusal(headers, port=self._port)

    def _presented(self, headers: list[tuple[str, str]], name: str) -> bool:
        # A client of the local API may have sent the header too, so one of them counts.
        values = [value.encode("latin-1") for key, value in headers if key == name]
        return any(compare_digest(value, self._token) for value in values)


async def _refuse(scope: Scope, receive: Receive, send: Send, why: str) -> None:
    if scope["type"] == "websocket":
        await receive()
        await send({"type": "websocket.close", "code": 1008})
        return
    body = json.dumps({"__type": "AccessDeniedException", "message": why}).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
    await send({"type": "http.response.start", "status": 403, "headers": headers})
    await send({"type": "http.response.body", "body": body})


def finish_invocations() -> None:
    """Lets dropped workers finish the invocation that they have, as AWS does; then ends them.

    ministack drops a function's workers at an update and where one of them cannot start. It kills
    them at once: messages would wait for their visibility timeout, and a run of which this was the
    last attempt would be dead. One that has unpacked its code and has no process yet would start
    without its modules.
    """
    from ministack.core import lambda_runtime  # noqa: PLC0415 - as in `main`

    def end(worker: Any) -> None:
        # An invocation holds the lock, its worker's start included.
        with worker._lock:  # noqa: SLF001
            process, worker._proc = worker._proc, None  # noqa: SLF001
            if process is not None:
                with process:
                    process.kill()
            worker._discard_tmpdir()  # noqa: SLF001

    def drop(workers: Iterable[Any]) -> None:
        for worker in workers:
            threading.Thread(target=end, args=(worker,), daemon=True).start()

    lambda_runtime.kill_workers = drop


def wait_for_logs() -> None:
    """Waits for the lines of an invocation where ministack asks for them every millisecond.

    It reads them until none has come for 5 ms; at a hundred invocations a second, asking takes a
    tenth of its CPU.
    """
    from ministack.core import lambda_runtime  # noqa: PLC0415 - as in `main`

    def drained(
        worker: Any,
        first_line_wait: float = 0.050,
        idle_confirm: float = 0.005,
        hard_cap: float = 0.250,
    ) -> str:
        lines: list[str] = []
        end = time.monotonic() + hard_cap
        wait = first_line_wait
        with contextlib.suppress(queue.Empty):
            while (left := end - time.monotonic()) > 0:
                lines.append(worker._stderr_queue.get(timeout=min(wait, left)))  # noqa: SLF001
                wait = idle_confirm
        return "\n".join(lines)

    lambda_runtime.Worker._drain_stderr_bounded = drained  # noqa: SLF001


def main() -> None:
    """Serves until the process is stopped."""
    from ministack import app as emulator  # noqa: PLC0415 - needs seconds; tests import the guard

    port, token = int(os.environ["GATEWAY_PORT"]), os.environ["AWS_SESSION_TOKEN"]
    emulator.app = SessionGuard(emulator.app, port=port, token=token)
    finish_invocations()
    wait_for_logs()
    emulator.main()


if __name__ == "__main__":
    main()
