"""The audit; its filters are the query of its URL."""

from collections.abc import Mapping
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from webhook_inbox.domain.audit import AuditedAction
from webhookctl.commands.audit import audit
from webhookctl.console.filters import BadFilter
from webhookctl.console.inbox import ConsoleInbox
from webhookctl.console.requests import Pages
from webhookctl.console.views import Views

PATH: Final = "/audit"
LISTED: Final = 200
FILTERS: Final = ("action", "by", "event", "since", "until")
# The page is opened to see who did what some days ago.
WINDOW: Final = "7d"


def routes(inbox: ConsoleInbox, views: Views, pages: Pages) -> list[Route]:
    """Returns the route of the audit."""

    def listed(request: Request) -> Response:
        query = request.query_params
        told = inbox.read(audit, **_wanted(query), limit=LISTED)
        return views.page(
            "audit.html",
            title="Audit",
            path=PATH,
            chosen={name: query.get(name, "") for name in FILTERS},
            known=sorted(AuditedAction),
            window=WINDOW,
            rows=[(each, _request(each), _result(each)) for each in told.objects],
            full=len(told.objects) == LISTED,
            notes=told.notes,
            partly=told.partly,
        )

    return [Route(PATH, pages.view(listed), methods=["GET"])]


def _wanted(query: Mapping[str, str]) -> dict[str, Any]:
    """Returns the parameters of the command; raises BadFilter for an unknown action."""
    given: dict[str, Any] = {name: query[name].strip() for name in FILTERS if query.get(name)}
    if "until" not in given:
        given.setdefault("since", WINDOW)
    elif "since" not in given:
        raise BadFilter("Before needs From: without it, the audit of the last 7 days is listed")
    if action := given.pop("action", ""):
        if action not in set(AuditedAction):
            raise BadFilter(f"action {action!r}: choose one of {', '.join(AuditedAction)}")
        given["action"] = AuditedAction(action)
    return given


def _request(each: Mapping[str, Any]) -> str:
    asked = {name: value for name, value in each["request"].items() if value not in {"", "False"}}
    return ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in asked.items())


def _result(each: Mapping[str, Any]) -> str:
    if each["counts"] is None:
        return "not finished"
    counts = [f"{count} {name.replace('_', ' ')}" for name, count in each["counts"].items()]
    stopped = [f"stopped: {each['stopped']}"] if each["stopped"] else []
    return ", ".join([*counts, *stopped]) or "nothing"
