"""Asking a provider's API, as often as it allows."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final, NamedTuple
from urllib.parse import urlencode

from webhook_inbox.domain.errors import InboxError, Unavailable
from webhook_inbox.domain.ports import Clock

TRIES: Final = 5
# Longer than this nobody sits in front of a terminal: GitHub's limits are reset every hour.
PATIENCE: Final = timedelta(minutes=2)
MESSAGE_LIMIT: Final = 200
DIGITS: Final = 11


class Unusable(InboxError):
    """The provider's API cannot be asked at all now; the text names the remedy."""


class Refused(InboxError):
    """The provider's API refused one request; another may be fine."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(f"{status}: {message}")
        self.status = status


@dataclass(frozen=True, slots=True)
class Question:
    """A request: `url` is whole, `body` a form or None."""

    method: str
    url: str
    headers: Mapping[str, str]
    body: bytes | None = None


class Reply(NamedTuple):
    """An answer; header names are in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def document(self) -> Any:
        """The body as JSON; raises Unusable where it is none."""
        try:
            return json.loads(self.body)
        except (ValueError, RecursionError) as error:
            raise Unusable("the answer is no JSON: see that the address is the API's") from error


# Sends a request once, follows no redirect; raises Unavailable where no answer comes.
Send = Callable[[Question], Reply]


@dataclass(slots=True, kw_only=True)
class Api:
    """One provider's API.

    Attributes:
        name: the provider's, for messages.
        base: its address, without a slash at the end.
        headers: sent with every request; the token is among them.
        send: sends one request.
        clock: waits.
        calm: the seconds to wait where it says "too many" and not for how long; doubled each
            time.
        resumes_at: before then it wants no further request.
    """

    name: str
    base: str
    headers: Mapping[str, str]
    send: Send
    clock: Clock
    calm: float = 1.0
    resumes_at: datetime | None = None

    def get(self, path: str, query: Mapping[str, str] | None = None) -> Reply:
        """Returns the answer, of status 2xx; raises Unusable or Refused."""
        url = f"{self.base}{path}" + (f"?{urlencode(query)}" if query else "")
        return self._ask(Question("GET", url, self.headers))

    def post(self, path: str, form: Mapping[str, str] | None = None) -> Reply:
        """Returns the answer, of status 2xx; raises Unusable or Refused.

        May ask twice where an answer was lost, so for what does no harm twice.
        """
        headers = {**self.headers, "content-type": "application/x-www-form-urlencoded"}
        body = urlencode(form).encode() if form else b""
        return self._ask(Question("POST", self.base + path, headers, body))

    def _ask(self, question: Question) -> Reply:
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
            failure = f"it answered {reply.status}"
            if self.resumes_at is None:
                self._wait((self.calm if limited else 1) * 2**attempt)
        raise Unusable(f"{self.name}, asked {TRIES} times: {failure}; try again in a moment")

    def _wait(self, seconds: float) -> None:
        self.resumes_at = self.clock.now() + timedelta(seconds=seconds)

    def _wait_for_leave(self) -> None:
        if self.resumes_at is None:
            return
        wait = self.resumes_at - self.clock.now()
        if wait > PATIENCE:
            raise Unusable(
                f"{self.name} takes no more requests until {self.resumes_at:%H:%M:%S} UTC:"
                " run it again then; what was done stays done"
            )
        if wait > timedelta():
            self.clock.sleep(wait.total_seconds())
        self.resumes_at = None

    def _judged(self, reply: Reply) -> Reply:
        if reply.status < 300:
            return reply
        if reply.status < 400:
            raise Refused(reply.status, "moved elsewhere: give its present name")
        if reply.status == 401:
            # Not its own words: some repeat a part of the token.
            raise Unusable(f"{self.name} does not know the token: set its secret again")
        raise Refused(reply.status, _message(reply.body))


def _is_limit(reply: Reply) -> bool:
    if reply.status == 429:
        return True
    # GitHub also answers 403, and says in words alone that it is no matter of rights.
    told = "retry-after" in reply.headers or reply.headers.get("x-ratelimit-remaining") == "0"
    return reply.status == 403 and (told or b"rate limit" in reply.body.lower())


def _resumption(reply: Reply, now: datetime) -> datetime | None:
    """Returns when the provider takes the next request, None where it does not say."""
    after = _number(reply.headers.get("retry-after", ""))
    if after is not None and reply.status >= 400:
        return now + timedelta(seconds=after)
    if reply.headers.get("x-ratelimit-remaining") != "0":
        return None
    reset = _number(reply.headers.get("x-ratelimit-reset", ""))
    return None if reset is None else datetime.fromtimestamp(reset, UTC)


def _number(text: str) -> int | None:
    # Eleven digits are beyond the year 5000, and below what a datetime can hold.
    return int(text) if text.isascii() and text.isdigit() and len(text) <= DIGITS else None


def _message(body: bytes) -> str:
    """Returns the API's own words, one line of them."""
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        found = None
    error = found.get("error", found) if isinstance(found, dict) else {}
    words = error.get("message", "") if isinstance(error, dict) else ""
    return " ".join(str(words).split())[:MESSAGE_LIMIT] or "it says no more"
