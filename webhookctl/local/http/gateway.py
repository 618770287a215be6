"""Passes requests to ministack's HTTP API, or invokes the ingest function directly.

ministack's HTTP API differs from AWS in two cases: non-UTF-8 bodies with a textual content type
lose bytes, and OPTIONS never reaches a function. The function is then invoked directly, with API
Gateway's event (payload format 2.0).
"""

import base64
import json
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import parse_qsl, unquote

from webhookctl.local.http.messages import Connections, Request, Response, end_to_end
from webhookctl.local.processes.guarded_ministack import SESSION

# The limit of a Lambda invocation's payload: the whole event, with the body escaped or in base64.
EVENT_LIMIT: Final = 6 * 1024 * 1024
# A body of this size fits in any escaping (\u0000: one byte becomes six).
SURELY_FITS: Final = EVENT_LIMIT // 6 - 64 * 1024
# API Gateway passes these as text, all others in base64.
TEXTUAL: Final = frozenset({"application/json", "application/xml", "application/javascript"})
PREFIX: Final = b"/webhooks/"
WEBHOOKS: Final = PREFIX.decode()


@dataclass(frozen=True, slots=True)
class Gateway:
    """A deployed API: ministack's port and token, the API's id, and its function's name."""

    port: int
    token: str
    api_id: str
    function: str

    async def call(self, request: Request, connections: Connections) -> Response:
        """Forwards a request; raises OSError where ministack does not answer."""
        if len(request.body) > SURELY_FITS and self._event_size(request) > EVENT_LIMIT:
            return too_large()
        if _needs_stand_in(request):
            return await self._invoke(request, connections)
        target = f"/_aws/execute-api/{self.api_id}/$default".encode() + request.target
        headers = (*end_to_end(request.headers), self._session)
        return await connections.send(
            self.port, Request(request.method, target, headers, request.body)
        )

    @property
    def _session(self) -> tuple[bytes, bytes]:
        return SESSION.encode(), self.token.encode()

    def _event_size(self, request: Request) -> int:
        return len(json.dumps(event(request, api_id=self.api_id), ensure_ascii=False).encode())

    async def _invoke(self, request: Request, connections: Connections) -> Response:
        payload = json.dumps(event(request, api_id=self.api_id)).encode()
        target = f"/2015-03-31/functions/{self.function}/invocations".encode()
        headers = ((b"Host", b"lambda"), (b"Content-Type", b"application/json"), self._session)
        answer = await connections.send(self.port, Request(b"POST", target, headers, payload))
        names = {key.lower() for key, _ in answer.headers}
        if answer.status != 200 or b"x-amz-function-error" in names:
            return as_json(500, {"message": "Internal Server Error"})
        return from_function(json.loads(answer.body or b"null"))


def event(request: Request, *, api_id: str) -> dict[str, Any]:
    """Returns API Gateway's event for a request (HTTP API, payload format 2.0)."""
    path, _, query = request.target.decode("latin-1").partition("?")
    headers = joined(request)
    text, encoded = _body(request)
    made: dict[str, Any] = {
        "version": "2.0",
        "routeKey": "ANY /webhooks/{source}",
        "rawPath": unquote(path),
        "rawQueryString": query,
        "headers": headers,
        "requestContext": _context(request, api_id=api_id, headers=headers),
        "pathParameters": _parameters(path),
        "isBase64Encoded": encoded,
    }
    if request.body:
        made["body"] = text
    if query:
        made["queryStringParameters"] = _joined_pairs(parse_qsl(query, keep_blank_values=True))
    return made


def _parameters(path: str) -> dict[str, str]:
    """Returns the path parameters of the source's route, or of its route with a tenant."""
    source, slash, tenant = path.removeprefix(WEBHOOKS).partition("/")
    return {"tenant": unquote(tenant)} if slash else {"source": unquote(source)}


def joined(request: Request) -> dict[str, str]:
    """Returns the headers of the event: lower-case names, repeated ones joined by commas."""
    pairs = [(k.decode("latin-1"), v.decode("latin-1")) for k, v in end_to_end(request.headers)]
    length = [("content-length", str(len(request.body)))] if request.body else []
    return _joined_pairs([(key.lower(), value) for key, value in (*pairs, *length)])


def from_function(result: Any) -> Response:
    """Returns API Gateway's response for a function's result."""
    if not isinstance(result, Mapping) or "statusCode" not in result:
        return as_json(200, result)
    body = str(result.get("body") or "")
    headers = {"content-type": "application/json"}
    headers |= {str(k).lower(): str(v) for k, v in (result.get("headers") or {}).items()}
    cookies = [("set-cookie", str(cookie)) for cookie in result.get("cookies") or ()]
    return Response(
        status=int(result["statusCode"]),
        headers=tuple((k.encode(), v.encode()) for k, v in (*headers.items(), *cookies)),
        body=base64.b64decode(body) if result.get("isBase64Encoded") else body.encode(),
    )


def as_json(status: int, content: Any) -> Response:
    """Returns a JSON response."""
    return Response(status, ((b"Content-Type", b"application/json"),), json.dumps(content).encode())


def too_large() -> Response:
    """Returns API Gateway's response to a request that exceeds the function's payload limit."""
    return as_json(413, {"message": "Request Entity Too Large"})


def _needs_stand_in(request: Request) -> bool:
    if not request.path.startswith(PREFIX):
        return False
    return request.method == b"OPTIONS" or (_textual(request) and not _is_utf8(request.body))


def _textual(request: Request) -> bool:
    kind = request.header(b"content-type").decode("latin-1").partition(";")[0].strip().lower()
    return kind.startswith("text/") or kind in TEXTUAL


def _is_utf8(body: bytes) -> bool:
    try:
        body.decode()
    except UnicodeDecodeError:
        return False
    return True


def _body(request: Request) -> tuple[str, bool]:
    if _textual(request) and _is_utf8(request.body):
        return request.body.decode(), False
    return base64.b64encode(request.body).decode(), bool(request.body)


def _context(request: Request, *, api_id: str, headers: Mapping[str, str]) -> dict[str, Any]:
    now = time.time()
    return {
        "accountId": "000000000000",
        "apiId": api_id,
        "domainName": headers.get("host", ""),
        "http": {
            "method": request.method.decode("latin-1"),
            "path": unquote(request.path.decode("latin-1")),
            "protocol": "HTTP/1.1",
            "sourceIp": "127.0.0.1",
            "userAgent": headers.get("user-agent", ""),
        },
        "requestId": f"{time.monotonic_ns():x}",
        "routeKey": "ANY /webhooks/{source}",
        "stage": "$default",
        "time": time.strftime("%d/%b/%Y:%H:%M:%S +0000", time.gmtime(now)),
        "timeEpoch": int(now * 1000),
    }


def _joined_pairs(pairs: list[tuple[str, str]]) -> dict[str, str]:
    found: dict[str, str] = {}
    for key, value in pairs:
        found[key] = f"{found[key]},{value}" if key in found else value
    return found
