"""The local API: `http://127.0.0.1:8787/webhooks/{source}`, with unchanged bytes."""

import asyncio
import contextlib
import json
import re
import threading
import time
from collections.abc import Callable, Collection
from concurrent.futures import Future
from datetime import UTC, datetime
from typing import Any, Final, Self

import h11

from webhook_inbox.client.suggestions import quoted
from webhookctl.display.untrusted import printable
from webhookctl.local.http.gateway import Gateway, as_json, too_large
from webhookctl.local.http.messages import (
    CHUNK,
    HEADER_LIMIT,
    Connections,
    Request,
    Response,
    end_to_end,
    framed,
)
from webhookctl.local.http.web_pages import refusal, wrong_host
from webhookctl.local.ports import LOOPBACK

DEFAULT_PORT: Final = 8787
BODY_LIMIT: Final = 10 * 1024 * 1024  # API Gateway's limit
IDLE_LIMIT: Final = 75.0
GATEWAY_LIMIT: Final = 30.0  # seconds until API Gateway answers 503
# ministack starts a process per request in flight, without limit: two hundred cold interpreters for
# a burst of two hundred. Further requests wait here.
IN_FLIGHT: Final = 4
SHOWN: Final = ("event_id", "status", "reason", "message")  # of an answer, in the log
WEBHOOKS: Final = b"/webhooks/"
# A browser opens approval links and sends their form; ingest checks where it is from.
APPROVALS: Final = b"/approvals/"
APPROVAL: Final = re.compile(APPROVALS + rb"[A-Za-z0-9._-]+")
# Paths that end in a token, which the log leaves out.
TOKENS: Final = (b"/completions/", b"/status/", APPROVALS)
BODILESS_STATUSES: Final = frozenset({204, 304})
HELP: Final = b"""webhook-inbox on this machine.

POST /webhooks/{source}      a provider's delivery, for a source of functions/inbox.toml
POST /completions/{token}    the result of a job that a handler waits for
GET /status/{token}          the status of an event, as its `status_url`
GET /approvals/{token}       the page of an approver, by the link of an announcement

Try:  webhookctl send FILE --source SOURCE     a signed sample
      webhookctl inbox list                    its status
"""

Log = Callable[[str], None]


class Front:
    """The HTTP server of the local API, in its own thread."""

    def __init__(self, port: int, log: Log, *, hosts: Collection[str] = frozenset()) -> None:
        """Prepares a server on a loopback port, 0 for a free one.

        `log` receives request lines; `hosts` are the names under which tunnels forward to it.
        """
        self.port = port
        self._hosts = hosts
        self.gateway: Gateway | None = None
        self._log = log
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stopping = asyncio.Event()
        self._reservations = asyncio.Semaphore(IN_FLIGHT)
        self._connections = Connections()
        self._thread = threading.Thread(target=self._run, daemon=True, name="front")
        self._started: Future[int] = Future()

    @property
    def url(self) -> str:
        """The base URL."""
        return f"http://{LOOPBACK}:{self.port}"

    def start(self) -> Self:
        """Starts to listen; raises OSError where the port is taken."""
        self._thread.start()
        self.port = self._started.result()
        return self

    def stop(self) -> None:
        """Stops and closes open connections; may be called twice."""
        if self._loop is not None and self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._stopping.set)
            self._thread.join()

    def _run(self) -> None:
        asyncio.run(self._listen())

    async def _listen(self) -> None:
        self._loop = asyncio.get_running_loop()
        try:
            server = await asyncio.start_server(self._serve, LOOPBACK, self.port, backlog=1024)
        except OSError as error:
            self._started.set_exception(error)
            return
        self._started.set_result(server.sockets[0].getsockname()[1])
        await self._stopping.wait()
        # asyncio leaks the socket of a half-accepted connection when its server closes.
        await _turns()
        server.close()
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)
        self._connections.close()
        await _turns()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        peer = _Peer(reader, writer)
        try:
            while (request := await peer.receive()) is not None:
                await peer.answer(await self._respond(request))
        except h11.RemoteProtocolError as error:
            await peer.refuse(error)
        except (OSError, TimeoutError):
            pass  # the client disconnected or timed out
        finally:
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()

    async def _respond(self, request: Request | Response) -> Response:
        if isinstance(request, Response):
            return request
        begun = time.monotonic()
        response = await self._dispatch(request)
        self._log(_line(request, response, seconds=time.monotonic() - begun))
        return response

    async def _dispatch(self, request: Request) -> Response:
        headers = [(k.decode("latin-1"), v.decode("latin-1")) for k, v in request.headers]
        check = wrong_host if APPROVAL.fullmatch(request.path) else refusal
        why = check(headers, port=self.port, hosts=self._hosts)
        if why:
            return as_json(403, {"message": f"{why}{_remedy(why, request)}"})
        if request.path == b"/" and request.method in {b"GET", b"HEAD"}:
            return Response(200, ((b"Content-Type", b"text/plain; charset=utf-8"),), HELP)
        if self.gateway is None:
            return as_json(502, {"message": "the local runtime is not ready"})
        try:
            async with self._reservations:
                async with asyncio.timeout(GATEWAY_LIMIT):
                    return await self.gateway.call(request, self._connections)
        except TimeoutError:
            return as_json(503, {"message": "Service Unavailable"})
        except OSError:
            return as_json(502, {"message": "the local runtime does not answer"})


class _Peer:
    """The connection of a client."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._http = h11.Connection(h11.SERVER, max_incomplete_event_size=HEADER_LIMIT)
        self._head = False

    async def receive(self) -> Request | Response | None:
        """Returns the next request, a response that refuses it, or None at the end."""
        if self._http.our_state is h11.DONE and self._http.their_state is h11.DONE:
            self._http.start_next_cycle()
        if self._http.our_state is not h11.IDLE:
            return None
        begin = await self._next()
        if not isinstance(begin, h11.Request):
            return None
        self._head = begin.method == b"HEAD"
        body = await self._body()
        if body is None:
            return too_large()
        return Request(begin.method, begin.target, tuple(begin.headers.raw_items()), body)

    async def answer(self, response: Response) -> None:
        """Sends a response."""
        headers = framed(end_to_end(response.headers), response.body)
        silent = self._head or response.status in BODILESS_STATUSES
        events: list[h11.Event] = [
            h11.Response(status_code=response.status, headers=headers, reason=b""),
            *([] if silent else [h11.Data(data=response.body)]),
            h11.EndOfMessage(),
        ]
        self._writer.write(b"".join(self._http.send(event) or b"" for event in events))
        await self._writer.drain()

    async def refuse(self, error: h11.RemoteProtocolError) -> None:
        """Answers a malformed request where the protocol state allows it."""
        if self._http.our_state in {h11.IDLE, h11.SEND_RESPONSE}:
            await self.answer(as_json(error.error_status_hint, {"message": str(error)}))

    async def _body(self) -> bytes | None:
        """Returns the body, or None where it exceeds API Gateway's limit.

        Reads it to the end, since a client that is still writing would otherwise see a connection
        reset instead of the response.
        """
        body, size = bytearray(), 0
        while isinstance(event := await self._next(), h11.Data):
            size += len(event.data)
            if size <= BODY_LIMIT:
                body += event.data
        return bytes(body) if size <= BODY_LIMIT else None

    async def _next(self) -> Any:
        while (event := self._http.next_event()) is h11.NEED_DATA:
            if self._http.they_are_waiting_for_100_continue:
                go_on = h11.InformationalResponse(status_code=100, headers=[], reason=b"Continue")
                self._writer.write(self._http.send(go_on) or b"")
            async with asyncio.timeout(IDLE_LIMIT):
                self._http.receive_data(await self._reader.read(CHUNK))
        return event


async def _turns() -> None:
    """Lets the event loop run pending callbacks, and those that they schedule."""
    for _ in range(4):
        await asyncio.sleep(0)


def _line(request: Request, response: Response, *, seconds: float) -> str:
    """Returns the log line, without query, headers and the tokens of paths: all may be secret."""
    now = datetime.now(UTC).astimezone()
    told = delivery_line(request, response)
    if told:
        return f"{now:%H:%M:%S} {told} ({response.status}, {seconds * 1000:.0f} ms)"
    named = next((p + b"{token}" for p in TOKENS if p in request.path), request.path)
    method, path = (printable(part.decode("latin-1")) for part in (request.method, named))
    return (
        f"{now:%H:%M:%S} front  {method} {path} {response.status}"
        f" {seconds * 1000:.0f} ms {len(request.body)} B{_outcome(response)}"
    )


def delivery_line(request: Request, response: Response) -> str:
    """Returns the outcome of a delivery, `accepted  github 72d3162e`; "" for other requests."""
    content = _content(response)
    if not request.path.startswith(WEBHOOKS) or "status" not in content:
        return ""
    source = request.path.removeprefix(WEBHOOKS).decode("latin-1")
    named = " ".join(filter(None, (source, str(content.get("event_id") or ""))))
    reason = f": {content['reason']}" if content.get("reason") else ""
    return printable(f"{content['status']:<9} {named}{reason}")


def _remedy(why: str, request: Request) -> str:
    host = request.header(b"host").decode("latin-1").rpartition(":")
    name = host[0] if host[1] and host[2].isdecimal() else host[2]
    return f"; for a tunnel, start with --public-host {quoted(name)}" if "Host" in why else ""


def _content(response: Response) -> dict[str, Any]:
    try:
        content = json.loads(response.body)
    except ValueError:
        return {}
    return content if isinstance(content, dict) else {}


def _outcome(response: Response) -> str:
    content = _content(response)
    shown = [f"{k}={printable(content[k])}" for k in SHOWN if k in content]
    return "".join(f" {item}" for item in shown)
