"""A client for providers' APIs that respects their rate limits."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from email.message import Message
from http.client import HTTPException
from typing import Any, Final, NamedTuple
from urllib.error import HTTPError, URLError
from urllib.parse import urlencode, urlsplit
from urllib.request import HTTPRedirectHandler, ProxyHandler, Request, build_opener

from webhook_inbox.client.errors import Refused
from webhook_inbox.domain.errors import InboxError, Unavailable
from webhook_inbox.domain.ports import Clock

LOOPBACK: Final = frozenset({"127.0.0.1", "localhost", "::1"})
TRIES: Final = 5
SECONDS: Final = 30
# The longest wait at a terminal; GitHub resets its limits every hour.
PATIENCE: Final = timedelta(minutes=2)
MESSAGE_LIMIT: Final = 200
DIGITS: Final = 11


class ApiUnusable(Refused):
    """The provider's API is unusable at present; the text names the remedy."""


class ApiRefused(InboxError):
    """The provider's API refused one request; others may succeed."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(f"{status}: {message}")
        self.status = status


@dataclass(frozen=True, slots=True)
class ApiRequest:
    """A request; `body` is a form or None."""

    method: str
    url: str
    headers: Mapping[str, str]
    body: bytes | None = None


class ApiReply(NamedTuple):
    """A response; header names are in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def document(self) -> Any:
        """The body as JSON; raises ApiUnusable for any other body."""
        try:
            return json.loads(self.body)
        except (ValueError, RecursionError) as error:
            raise ApiUnusable("the response is not JSON: check the API's address") from error


# Sends a request once, follows no redirect; raises Unavailable without a response.
Send = Callable[[ApiRequest], ApiReply]


@dataclass(slots=True, kw_only=True)
class Api:
    """One provider's API.

    Attributes:
        name: the provider, for messages.
        base: the base URL, without a trailing slash.
        headers: sent with every request, the token included.
        send: sends one request.
        clock: waits.
        calm: the seconds to wait after a rate limit without a stated time; doubled each time.
        resumes_at: the earliest time of the next request.
    """

    name: str
    base: str
    headers: Mapping[str, str]
    send: Send
    clock: Clock
    calm: float = 1.0
    resumes_at: datetime | None = None

    def get(self, path: str, query: Mapping[str, str] | None = None) -> ApiReply:
        """Returns a 2xx response; raises ApiUnusable or ApiRefused."""
        url = f"{self.base}{path}" + (f"?{urlencode(query)}" if query else "")
        return self._ask(ApiRequest("GET", url, self.headers))

    def post(self, path: str, form: Mapping[str, str] | None = None) -> ApiReply:
        """Returns a 2xx response; raises ApiUnusable or ApiRefused.

        For idempotent requests only: it retries where a response was lost.
        """
        headers = {**self.headers, "content-type": "application/x-www-form-urlencoded"}
        body = urlencode(form).encode() if form else b""
        return self._ask(ApiRequest("POST", self.base + path, headers, body))

    def _ask(self, question: ApiRequest) -> ApiReply:
        failure = ""
        for attempt in range(TRIES):
            self._wait_for_leave()
            try:
                reply = self.send(question)
            except Unavailable as error:
                failure = str(error)
                self._wait(2**attempt)
                continue
            self.resumes_at = _resumption(reply, self.clock.now())
            limited = _is_limit(reply)
            if not limited and reply.status < 500:
                return self._judged(reply)
            failure = f"status {reply.status}"
            if self.resumes_at is None:
                self._wait((self.calm if limited else 1) * 2**attempt)
        raise ApiUnusable(f"{self.name} failed {TRIES} times: {failure}; try again in a moment")

    def _wait(self, seconds: float) -> None:
        self.resumes_at = self.clock.now() + timedelta(seconds=seconds)

    def _wait_for_leave(self) -> None:
        if self.resumes_at is None:
            return
        wait = self.resumes_at - self.clock.now()
        if wait > PATIENCE:
            raise ApiUnusable(
                f"{self.name} limits requests until {self.resumes_at:%H:%M:%S} UTC: run the command"
                " again then; completed requests stay completed"
            )
        if wait > timedelta():
            self.clock.sleep(wait.total_seconds())
        self.resumes_at = None

    def _judged(self, reply: ApiReply) -> ApiReply:
        if reply.status < 300:
            return reply
        if reply.status < 400:
            raise ApiRefused(reply.status, "moved: use its current name")
        if reply.status == 401:
            # Not the response's text: some APIs repeat a part of the token.
            raise ApiUnusable(f"{self.name} rejects the token: set its secret again")
        raise ApiRefused(reply.status, _message(reply.body))


def _is_limit(reply: ApiReply) -> bool:
    if reply.status == 429:
        return True
    # GitHub also limits with 403; only the text distinguishes that from missing permissions.
    told = "retry-after" in reply.headers or reply.headers.get("x-ratelimit-remaining") == "0"
    return reply.status == 403 and (told or b"rate limit" in reply.body.lower())


def _resumption(reply: ApiReply, now: datetime) -> datetime | None:
    """Returns the time of the next allowed request; None where the reply states none."""
    after = _number(reply.headers.get("retry-after", ""))
    if after is not None and reply.status >= 400:
        return now + timedelta(seconds=after)
    if reply.headers.get("x-ratelimit-remaining") != "0":
        return None
    reset = _number(reply.headers.get("x-ratelimit-reset", ""))
    return None if reset is None else datetime.fromtimestamp(reset, UTC)


def _number(text: str) -> int | None:
    # Eleven digits reach beyond the year 5000 and fit a datetime.
    return int(text) if text.isascii() and text.isdigit() and len(text) <= DIGITS else None


def _message(body: bytes) -> str:
    """Returns the error message of a response as one line."""
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        found = None
    error = found.get("error", found) if isinstance(found, dict) else {}
    words = error.get("message", "") if isinstance(error, dict) else ""
    return " ".join(str(words).split())[:MESSAGE_LIMIT] or "no message"


class _Stay(HTTPRedirectHandler):
    """Follows no redirect, which would forward the token."""

    def redirect_request(self, *_: Any) -> None:
        """Returns None, so that the redirect itself is the response."""


def send(question: ApiRequest) -> ApiReply:
    """Sends a request once; raises Unavailable without a response."""
    loopback = urlsplit(question.url).hostname in LOOPBACK
    opener = build_opener(_Stay, *([ProxyHandler({})] if loopback else []))
    request = Request(  # noqa: S310 - `address` allows only https and loopback
        question.url,
        data=question.body,
        headers={"user-agent": "webhookctl", **question.headers},
        method=question.method,
    )
    try:
        with opener.open(request, timeout=SECONDS) as response:
            return ApiReply(response.status, _lower(response.headers), response.read())
    except HTTPError as error:
        with error:
            return ApiReply(error.code, _lower(error.headers), error.read())
    except (URLError, HTTPException, OSError) as error:
        host = urlsplit(question.url).netloc
        cause = str(getattr(error, "reason", None) or error)
        raise Unavailable(host, question.method, f"no response: {cause}") from error


def address(text: str) -> str:
    """Returns an API's base URL; raises Refused for one that a token may not be sent to."""
    parts = urlsplit(text)
    safe = parts.scheme == "https" or (parts.scheme == "http" and parts.hostname in LOOPBACK)
    if not safe or not parts.hostname or parts.query or parts.username:
        raise Refused(f"{text} is not a safe address for a token: use https://…")
    return text.rstrip("/")


def _lower(headers: Message) -> dict[str, str]:
    return {name.lower(): value for name, value in headers.items()}
