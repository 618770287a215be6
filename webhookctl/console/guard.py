"""Keeps other users, other pages and other hosts out of the console.

The console acts with the credentials of its user, so a page of another site, or of another port of
this machine, must neither read nor act. A cookie is not enough: browsers send it to every port of a
host, and SameSite counts ports as one site. Therefore a request needs the exact Host, a read the
session's cookie, and a write the exact Origin and a token in the form as well.
"""

import hmac
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from secrets import token_hex
from typing import Final

from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

STATIC: Final = "/static/"
# `same-origin`, since browsers send `Origin: null` with a form under `no-referrer`.
HEADERS: Final[Mapping[str, str]] = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src"
        " 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
    ),
    "cache-control": "no-store",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "referrer-policy": "same-origin",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
}
# A redirect would keep the other site as the initiator of the next request, and a browser would
# not send a strict cookie with it; a page that loads the next one is its own initiator.
ENTERED: Final = (
    '<!doctype html><html lang="en"><title>Opening the console</title>'
    '<meta name="referrer" content="no-referrer"><meta http-equiv="refresh" content="0;url=/">'
    '<p>Opening the console. <a href="/">Continue</a></p></html>'
)
SHUT: Final = "Open the link that `webhookctl console` printed; it contains this session's token."


@dataclass(frozen=True, slots=True)
class Session:
    """The secrets of one console process, and its address.

    Attributes:
        port: the port on 127.0.0.1.
        token: the token in the printed URL.
        cookie: the value of the cookie that the token is exchanged for.
        form_token: the token that every form has.
    """

    port: int
    token: str = field(repr=False)
    cookie: str = field(repr=False)
    form_token: str = field(repr=False)

    @classmethod
    def begin(cls, port: int, token: Callable[[], str] = token_hex) -> "Session":
        """Returns a session with new secrets, which `token` makes."""
        return cls(port, token(), token(), token())

    @property
    def cookie_name(self) -> str:
        """The name of the cookie; ports share cookies, so it names the port."""
        return f"webhookctl-console-{self.port}"

    @property
    def hosts(self) -> frozenset[str]:
        """The values of Host under which the console answers."""
        return frozenset({f"127.0.0.1:{self.port}", f"localhost:{self.port}"})

    @property
    def url(self) -> str:
        """The URL to open."""
        return f"http://127.0.0.1:{self.port}/?token={self.token}"

    def entered_by(self, request: Request) -> bool:
        """Returns whether a request has the session's cookie."""
        return _same(request.cookies.get(self.cookie_name, ""), self.cookie)


class Guard:
    """The outermost ASGI middleware; refuses before any page sees the request."""

    def __init__(self, app: ASGIApp, session: Session) -> None:
        self._app = app
        self._session = session

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers or passes on one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers[name] = value
            await send(message)

        request = Request(scope)
        answer = self._refusal(request) or self._entrance(request)
        await (answer or self._app)(scope, receive, with_headers)

    def _refusal(self, request: Request) -> Response | None:
        host = request.headers.get("host", "")
        if host not in self._session.hosts:
            return PlainTextResponse("This console has another address.", 421)
        if request.method not in {"GET", "HEAD", "POST"}:
            return PlainTextResponse("GET or POST.", 405, {"allow": "GET, HEAD, POST"})
        if request.method == "POST" and not _from_own_page(request, host):
            return PlainTextResponse("Only the console's own pages may post.", 403)
        return None

    def _entrance(self, request: Request) -> Response | None:
        given = request.query_params.get("token")
        if request.url.path == "/" and given is not None and _same(given, self._session.token):
            answer = HTMLResponse(ENTERED)
            answer.set_cookie(
                self._session.cookie_name, self._session.cookie, httponly=True, samesite="strict"
            )
            return answer
        public = request.url.path.startswith(STATIC)
        if public or self._session.entered_by(request):
            return None
        return PlainTextResponse(SHUT, 401)


def _from_own_page(request: Request, host: str) -> bool:
    own = request.headers.get("origin") == f"http://{host}"
    return own and request.headers.get("sec-fetch-site", "same-origin") == "same-origin"


def _same(given: str, expected: str) -> bool:
    return hmac.compare_digest(given.encode(), expected.encode())
