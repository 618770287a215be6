"""The audit; its filters are the query of its URL."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from webhook_inbox.client.times import moment
from webhook_inbox.domain.audit import AuditedAction, AuditEntry
from webhookctl.console.filters import BadFilter
from webhookctl.console.inbox import PARTLY, ConsoleInbox
from webhookctl.console.requests import Pages
from webhookctl.console.views import Views
from webhookctl.display.audit import request_text, result_text

PATH: Final = "/audit"
LISTED: Final = 200
FILTERS: Final = ("action", "by", "event", "since", "until")
# The page is opened to see who did what some days ago.
WINDOW: Final = "7d"


def routes(inbox: ConsoleInbox, views: Views, pages: Pages) -> list[Route]:
    """Returns the route of the audit."""

    def listed(request: Request) -> Response:
        query = request.query_params
        client = inbox.reading()
        found = client.audit.list(**_filters_of(query, inbox.clock.now()), limit=LISTED)
        rows = [(each, request_text(each), _result(each)) for each in found]
        return views.page(
            "audit.html",
            title="Audit",
            path=PATH,
            chosen={name: query.get(name, "") for name in FILTERS},
            known=sorted(AuditedAction),
            window=WINDOW,
            rows=rows,
            full=found.full,
            notes=[PARTLY] if client.is_cut else [],
            partly=client.is_cut,
        )

    return [Route(PATH, pages.view(listed), methods=["GET"])]


def _filters_of(query: Mapping[str, str], now: datetime) -> dict[str, Any]:
    """Returns the filters of the list; raises BadFilter for an unknown action or a wrong window."""
    given: dict[str, Any] = {name: query[name].strip() for name in FILTERS if query.get(name)}
    if "until" not in given:
        given.setdefault("since", WINDOW)
    elif "since" not in given:
        raise BadFilter("Before needs From: without it, the audit of the last 7 days is listed")
    if action := given.pop("action", ""):
        if action not in set(AuditedAction):
            raise BadFilter(f"action {action!r}: choose one of {', '.join(AuditedAction)}")
        given["action"] = AuditedAction(action)
    if "event" in given:
        given["event_id"] = given.pop("event")
    times = {name: moment(given[name], now) for name in ("since", "until") if name in given}
    if times["since"] > times.get("until", now):
        raise BadFilter(f"From {given['since']} is not before {given.get('until', 'now')}")
    return given | times


def _result(each: AuditEntry) -> str:
    return result_text(each) + (f": {each.stopped}" if each.stopped else "")
