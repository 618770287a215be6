"""The list of events."""

from typing import Any
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from webhook_inbox.domain.model import EventStatus
from webhookctl.console.event_list import page_of
from webhookctl.console.filters import HOW_THEY_COMBINE, VIEWS, EventFilter
from webhookctl.console.inbox import ConsoleInbox
from webhookctl.console.replay_scope import scope_of
from webhookctl.console.requests import Pages
from webhookctl.console.views import Views

PATH = "/events"


def routes(inbox: ConsoleInbox, views: Views, pages: Pages) -> list[Route]:
    """Returns the routes of the list."""

    def listed(request: Request) -> Response:
        chosen = EventFilter.of(request.query_params)
        page = page_of(inbox, chosen)
        older = page.older and f"{PATH}?{page.older.query}"
        here = f"{PATH}?{chosen.query}"
        values: dict[str, Any] = {"chosen": chosen, "page": page, "older": older, "here": here}
        if request.query_params.get("part") == "list":
            return views.fragment("events/list.html", **values)
        return views.page(
            "events/page.html",
            title="Events",
            path=PATH,
            statuses=list(EventStatus),
            sources=sorted(inbox.manifest.sources),
            handlers=sorted(inbox.manifest.handlers),
            how=HOW_THEY_COMBINE,
            views=[(name, f"{PATH}?{view.query}", view == chosen) for name, view in VIEWS],
            scope=scope_of(chosen),
            live=f"{PATH}?{urlencode([*chosen.set, ('part', 'list')])}",
            **values,
        )

    return [Route(PATH, pages.view(listed))]
