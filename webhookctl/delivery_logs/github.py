"""GitHub's log of a webhook's deliveries, of a repository or an organization.

It goes back 3 days, and GitHub sends nothing again unless it is asked to. A redelivery has the same
`X-GitHub-Delivery` as its first delivery, and a log entry of its own.
Source: docs.github.com `rest/repos/webhooks`, `rest/orgs/webhooks`, and its best practices for the
REST API, which want a second between requests that change something, and a minute after "too many".
"""

import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit

from webhookctl.delivery_logs.api import Api, Unusable
from webhookctl.delivery_logs.log import Logged

ADDRESS: Final = "https://api.github.com"
CALM: Final = 60.0
PAGE: Final = 100
# A name may begin with a dot, but `.` and `..` would be another path.
_NAME: Final = r"(?!\.{1,2}/)([\w.-]+)"
_HOOK: Final = re.compile(rf"{_NAME}(?:/{_NAME})?/([0-9]+)", re.ASCII)
_NEXT: Final = re.compile(r'<([^>]*)>;\s*rel="next"')


def headers(token: str) -> Mapping[str, str]:
    """Returns what is sent with every request."""
    return {
        "accept": "application/vnd.github+json",
        "authorization": f"Bearer {token}",
        "x-github-api-version": "2022-11-28",
    }


def path_of(hook: str) -> str:
    """Returns the API's path of `OWNER/REPO/ID` or `ORGANIZATION/ID`; raises ValueError."""
    found = _HOOK.fullmatch(hook)
    if found is None:
        raise ValueError("write OWNER/REPO/ID, or ORGANIZATION/ID: the ID ends the hook's address")
    owner, repository, number = found.groups()
    of = f"/repos/{owner}/{repository}" if repository else f"/orgs/{owner}"
    return f"{of}/hooks/{number}"


class GitHubLog:
    """The port `DeliveryLog`.

    Args:
        api: GitHub's.
        path: the webhook's, from `path_of`.
    """

    memory = timedelta(days=3)
    pause = 1.0

    def __init__(self, api: Api, path: str) -> None:
        self._api = api
        self._deliveries = f"{path}/deliveries"

    def entries(self, low: datetime, high: datetime) -> Iterator[Logged]:
        """See the port."""
        seen: set[str] = set()
        query: dict[str, str] | None = {"per_page": str(PAGE)}
        while query is not None:
            reply = self._api.get(self._deliveries, query)
            page = [_logged(entry) for entry in _list(reply.document)]
            for entry in page:
                if low <= entry.at <= high and entry.event_id not in seen:
                    seen.add(entry.event_id)
                    yield entry
            # Entries are in the order in which they were begun, so a slow one may stand higher
            # than its time: a page ends the search when all of it is too old.
            older = bool(page) and all(entry.at < low for entry in page)
            query = None if older else _next(reply.headers.get("link", ""))

    def resend(self, entry: Logged) -> None:
        """See the port."""
        self._api.post(f"{self._deliveries}/{entry.handle}/attempts")


def _next(link: str) -> dict[str, str] | None:
    """Returns the query of the next page; the address itself stays the one that we know."""
    found = _NEXT.search(link)
    if found is None:
        return None
    cursor = parse_qs(urlsplit(found[1]).query).get("cursor")
    return {"per_page": str(PAGE), "cursor": cursor[0]} if cursor else None


def _list(document: Any) -> list[Any]:
    if not isinstance(document, list):
        raise Unusable("the answer is no list of deliveries: see that the address is GitHub's API")
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
        raise Unusable("an entry of the log is not what GitHub documents") from error
