"""The runs that wait for a decision, each with all that a person decides about."""

from typing import Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from webhook_inbox.client.holds import HeldRun
from webhookctl.console import actions
from webhookctl.console.inbox import PARTLY, ConsoleInbox
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
        found = inbox.reading().holds.list(limit=LISTED)
        holds = [(each, _effect(each), _offered(each)) for each in found]
        return views.page(
            "approvals.html",
            title="Approvals",
            path=PATH,
            holds=holds,
            full=found.full,
            notes=[PARTLY] if found.partial else [],
            partly=found.partial,
            event_path=event_path,
            done=views.message(request.query_params.get("done", "")),
        )

    return [Route(PATH, pages.view(listed), methods=["GET"])]


def _effect(each: HeldRun) -> str:
    """Returns the name of the effect that a request asks about, "" for none."""
    return each.effect if each.subject.startswith(EFFECT) else ""


def _offered(each: HeldRun) -> list[RowAction]:
    names = {
        "event_id": each.event_id,
        "source": each.source,
        "handler": each.handler,
        "hold": each.hold,
    }
    doubtful = _effect(each) and (each.fingerprint or "").startswith(DOUBT)
    no_doubt = "" if doubtful else "no effect of it is in doubt"
    return [
        RowAction(action.title, action.address(**names), refused)
        for action, refused in (
            (actions.APPROVE, ""),
            (actions.HAPPENED, no_doubt),
            (actions.DENY, ""),
        )
    ]
