"""Posts a delivery over HTTP."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from http.client import HTTPException
from typing import Any, Final
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import ProxyHandler, Request, build_opener

from webhook_inbox.client.delivery_logs.api import LOOPBACK
from webhook_inbox.client.errors import Refused

SECONDS: Final = 30


@dataclass(frozen=True, slots=True)
class PostAnswer:
    """An HTTP response; status 0 without one."""

    status: int
    text: str

    @property
    def accepted(self) -> bool:
        """True if a provider would not retry."""
        return 200 <= self.status < 300

    @property
    def data(self) -> Any:
        """The body: JSON where it is JSON, otherwise text."""
        try:
            return json.loads(self.text)
        except ValueError:
            return self.text

    @property
    def outcome(self) -> str:
        """The delivery's outcome as the inbox names it, otherwise the HTTP status."""
        data = self.data
        if isinstance(data, dict) and isinstance(data.get("status"), str):
            return str(data["status"])
        return f"HTTP {self.status}" if self.status else "without an answer"


def post(url: str, body: bytes, headers: Mapping[str, str], query: str = "") -> PostAnswer:
    """Posts a delivery once; raises Refused for an invalid URL."""
    parts = urlsplit(url)
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise Refused(f"{url} is no address: begin it with https:// or http://")
    # Loopback needs no proxy.
    opener = build_opener(ProxyHandler({})) if parts.hostname in LOOPBACK else build_opener()
    whole = url if not query else f"{url}{'&' if parts.query else '?'}{query}"
    request = Request(whole, data=body, headers=dict(headers), method="POST")  # noqa: S310
    try:
        with opener.open(request, timeout=SECONDS) as response:
            return PostAnswer(response.status, _text(response.read()))
    except HTTPError as error:
        with error:
            return PostAnswer(error.code, _text(error.read()))
    except ValueError as error:
        raise Refused(f"{url} cannot be posted to: {error}") from error
    except (URLError, HTTPException, OSError) as error:
        reason = getattr(error, "reason", None) or error
        return PostAnswer(0, f"no answer: {reason}; see that it runs")


def _text(body: bytes) -> str:
    return body.decode(errors="replace").strip()
