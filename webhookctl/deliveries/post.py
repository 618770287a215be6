"""Posting a delivery over HTTP."""

import json
from dataclasses import dataclass
from http.client import HTTPException
from typing import Any, Final
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import ProxyHandler, Request, build_opener

from webhookctl.deliveries.samples import Draft
from webhookctl.errors import CommandError

SECONDS: Final = 30
LOOPBACK: Final = frozenset({"127.0.0.1", "localhost", "::1"})
SHOWN: Final = 200


@dataclass(frozen=True, slots=True)
class Answer:
    """An HTTP answer; status 0 where none came."""

    status: int
    text: str

    @property
    def accepted(self) -> bool:
        """Whether the provider would not send it again."""
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
        """What became of the delivery, in the inbox's own word where it says one."""
        data = self.data
        if isinstance(data, dict) and isinstance(data.get("status"), str):
            return str(data["status"])
        return f"HTTP {self.status}" if self.status else "without an answer"


def post(url: str, draft: Draft) -> Answer:
    """Posts a delivery once; raises CommandError where the address cannot be one."""
    parts = urlsplit(url)
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise CommandError(f"{url} is no address: begin it with https:// or http://")
    # A proxy has no business on loopback.
    opener = build_opener(ProxyHandler({})) if parts.hostname in LOOPBACK else build_opener()
    whole = url if not draft.query else f"{url}{'&' if parts.query else '?'}{draft.query}"
    request = Request(whole, data=draft.body, headers=dict(draft.headers), method="POST")  # noqa: S310
    try:
        with opener.open(request, timeout=SECONDS) as response:
            return Answer(response.status, _text(response.read()))
    except HTTPError as error:
        with error:
            return Answer(error.code, _text(error.read()))
    except ValueError as error:
        raise CommandError(f"{url} cannot be posted to: {error}") from error
    except (URLError, HTTPException, OSError) as error:
        reason = getattr(error, "reason", None) or error
        return Answer(0, f"no answer: {reason}; see that it runs")


def _text(body: bytes) -> str:
    return body.decode(errors="replace").strip()
