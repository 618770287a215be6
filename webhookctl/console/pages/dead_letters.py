"""Dead letters by cause; each group has the replay of its dead runs."""

from typing import Any, Final

from botocore.exceptions import BotoCoreError, ClientError
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from webhook_inbox.domain.errors import InboxError
from webhookctl.commands.dlq import list_dlqs
from webhookctl.commands.failures import errors
from webhookctl.console.inbox import ConsoleInbox
from webhookctl.console.requests import Pages
from webhookctl.console.views import Views
from webhookctl.errors import CommandError, explain

PATH: Final = "/dead-letters"
GROUPS: Final = 100


def routes(inbox: ConsoleInbox, views: Views, pages: Pages) -> list[Route]:
    """Returns the route of dead letters."""

    def listed(request: Request) -> Response:
        groups = inbox.read(errors, limit=GROUPS)
        lanes, unread = _lanes(inbox)
        return views.page(
            "dead_letters.html",
            title="Dead letters",
            path=PATH,
            groups=groups.objects,
            lanes=lanes,
            unread=unread,
            notes=groups.notes,
            partly=groups.partly,
            done=views.message(request.query_params.get("done", "")),
        )

    return [Route(PATH, pages.view(listed), methods=["GET"])]


def _lanes(inbox: ConsoleInbox) -> tuple[list[dict[str, Any]], str]:
    """Returns the queues of dead runs, or why they cannot be read; the ledger has the runs."""
    try:
        queues = inbox.read(list_dlqs)
    except (CommandError, InboxError, ClientError, BotoCoreError) as error:
        return [], explain(error)
    return [each for each in queues.objects if "lane" in each], ""
