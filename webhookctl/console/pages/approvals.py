"""The runs that wait for a decision, each with all that a person decides about."""

from collections.abc import Mapping
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from webhookctl.commands import hold
from webhookctl.console import actions
from webhookctl.console.inbox import ConsoleInbox
from webhookctl.console.requests import Pages
from webhookctl.console.tables import RowAction
from webhookctl.console.views import Views, event_path

PATH: Final = "/approvals"
LISTED: Final = 200
EFFECT: Final = "effect:"
# The fingerprint of a request about an effect in doubt begins so; all others are of its arguments.
DOUBT: Final = "doubt:"


def routes(inbox: ConsoleInbox, views: Views, pages: Pages) -> list[Route]:
    """Returns the route of approvals."""

    def listed(request: Request) -> Response:
        told = inbox.read(hold.list_holds, limit=LISTED)
        return views.page(
            "approvals.html",
            title="Approvals",
            path=PATH,
            holds=[(each, _effect(each), _offered(each)) for each in told.objects],
            full=len(told.objects) == LISTED,
            notes=told.notes,
            partly=told.partly,
            event_path=event_path,
            done=views.message(request.query_params.get("done", "")),
        )

    return [Route(PATH, pages.view(listed), methods=["GET"])]


def _effect(each: Mapping[str, Any]) -> str:
    """Returns the name of the effect that a request asks about, "" for none."""
    subject = str(each["subject"])
    return subject.removeprefix(EFFECT) if subject.startswith(EFFECT) else ""


def _offered(each: Mapping[str, Any]) -> list[RowAction]:
    names = {name: each[name] for name in ("event_id", "source", "handler", "hold")}
    doubtful = _effect(each) and str(each["fingerprint"]).startswith(DOUBT)
    no_doubt = "" if doubtful else "no effect of it is in doubt"
    return [
        RowAction(action.title, action.address(**names), refused)
        for action, refused in (
            (actions.APPROVE, ""),
            (actions.HAPPENED, no_doubt),
            (actions.DENY, ""),
        )
    ]
