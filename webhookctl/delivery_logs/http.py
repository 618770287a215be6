"""Sending one request to a provider's API."""

from email.message import Message
from http.client import HTTPException
from typing import Any, Final
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import HTTPRedirectHandler, ProxyHandler, Request, build_opener

from webhook_inbox.domain.errors import Unavailable
from webhookctl.deliveries.post import LOOPBACK
from webhookctl.delivery_logs.api import Question, Reply
from webhookctl.errors import CommandError

SECONDS: Final = 30


class _Stay(HTTPRedirectHandler):
    """Follows no redirect: the token would go along, to wherever it leads."""

    def redirect_request(self, *_: Any) -> None:
        """Returns no request, so that the answer itself is the result."""


def send(question: Question) -> Reply:
    """Sends a request once; raises Unavailable where no answer comes."""
    loopback = urlsplit(question.url).hostname in LOOPBACK
    opener = build_opener(_Stay, *([ProxyHandler({})] if loopback else []))
    request = Request(  # noqa: S310 - `address` let https alone through, or loopback
        question.url,
        data=question.body,
        headers={"user-agent": "webhookctl", **question.headers},
        method=question.method,
    )
    try:
        with opener.open(request, timeout=SECONDS) as response:
            return Reply(response.status, _named(response.headers), response.read())
    except HTTPError as error:
        with error:
            return Reply(error.code, _named(error.headers), error.read())
    except (URLError, HTTPException, OSError) as error:
        host = urlsplit(question.url).netloc
        cause = str(getattr(error, "reason", None) or error)
        raise Unavailable(host, question.method, f"no answer: {cause}") from error


def address(text: str) -> str:
    """Returns the address of an API without a slash at its end.

    Raises:
        CommandError: a token may not be sent there, or it is no address.
    """
    parts = urlsplit(text)
    safe = parts.scheme == "https" or (parts.scheme == "http" and parts.hostname in LOOPBACK)
    if not safe or not parts.hostname or parts.query or parts.username:
        raise CommandError(f"{text} is no address that a token may be sent to: use https://…")
    return text.rstrip("/")


def _named(headers: Message) -> dict[str, str]:
    return {name.lower(): value for name, value in headers.items()}
