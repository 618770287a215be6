"""GitHub's log of a webhook's deliveries, of a repository or an organization.

It covers 3 days. GitHub redelivers only on request; a redelivery has the `X-GitHub-Delivery` of the
first delivery and its own log entry.
Source: docs.github.com `rest/repos/webhooks`, `rest/orgs/webhooks`, and the best practices for the
REST API: a second between writing requests, a minute after "too many requests".
"""

import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit

from webhook_inbox.client.delivery_logs.api import Api, ApiUnusable
from webhook_inbox.client.delivery_logs.comparison import Logged

PAGE: Final = 100
# A name may begin with a dot; `.` and `..` would change the path.
_NAME: Final = r"(?!\.{1,2}/)([\w.-]+)"
_HOOK: Final = re.compile(rf"{_NAME}(?:/{_NAME})?/([0-9]+)", re.ASCII)
_NEXT: Final = re.compile(r'<([^>]*)>;\s*rel="next"')


class GitHubLog:
    """A `DeliveryLog` of the webhook with this API path."""

    address: Final = "https://api.github.com"
    calm: Final = 60.0
    memory = timedelta(days=3)
    pause = 1.0

    @staticmethod
    def headers(token: str) -> Mapping[str, str]:
        """Returns the headers of every request."""
        return {
            "accept": "application/vnd.github+json",
            "authorization": f"Bearer {token}",
            "x-github-api-version": "2022-11-28",
        }

    @staticmethod
    def named(hook: str) -> str:
        """Returns the API path of `OWNER/REPO/ID` or `ORGANIZATION/ID`; raises ValueError."""
        found = _HOOK.fullmatch(hook)
        if found is None:
            raise ValueError("use OWNER/REPO/ID or ORGANIZATION/ID; the hook's URL ends in its ID")
        owner, repository, number = found.groups()
        parent = f"/repos/{owner}/{repository}" if repository else f"/orgs/{owner}"
        return f"{parent}/hooks/{number}"

    def __init__(self, api: Api, path: str) -> None:
        self._api = api
        self._deliveries = f"{path}/deliveries"

    def entries(self, low: datetime, high: datetime) -> Iterator[Logged]:
        """See `DeliveryLog`."""
        seen: set[str] = set()
        query: dict[str, str] | None = {"per_page": str(PAGE)}
        while query is not None:
            reply = self._api.get(self._deliveries, query)
            page = [_logged(entry) for entry in _list(reply.document)]
            for entry in page:
                if low <= entry.at <= high and entry.event_id not in seen:
                    seen.add(entry.event_id)
                    yield entry
            # Entries are ordered by their start, so a slow one may precede newer ones. The search
            # ends at a page whose entries are all too old.
            older = bool(page) and all(entry.at < low for entry in page)
            query = None if older else _next(reply.headers.get("link", ""))

    def resend(self, entry: Logged) -> None:
        """See `DeliveryLog`."""
        self._api.post(f"{self._deliveries}/{entry.handle}/attempts")


def _next(link: str) -> dict[str, str] | None:
    """Returns the query of the next page; the link's host and path are ignored."""
    found = _NEXT.search(link)
    if found is None:
        return None
    cursor = parse_qs(urlsplit(found[1]).query).get("cursor")
    return {"per_page": str(PAGE), "cursor": cursor[0]} if cursor else None


def _list(document: Any) -> list[Any]:
    if not isinstance(document, list):
        raise ApiUnusable(
            "the response is not a list of deliveries: check that the address is GitHub's API"
        )
    return document


def _logged(entry: Any) -> Logged:
    try:
        action = entry.get("action")
        return Logged(
            event_id=str(entry["guid"]),
            type=f"{entry['event']}.{action}" if action else str(entry["event"]),
            at=datetime.fromisoformat(entry["delivered_at"]).astimezone(UTC),
            answered=int(entry["status_code"]) or None,
            handle=str(int(entry["id"])),
        )
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise ApiUnusable("a log entry is not in GitHub's documented format") from error
