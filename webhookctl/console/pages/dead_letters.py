"""Dead letters by cause; each group has the replay of its dead runs."""

from collections.abc import Sequence
from typing import Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from webhook_inbox.client.client import InboxClient
from webhook_inbox.client.dead_letters import DeadLetterLane
from webhook_inbox.domain.errors import InboxError
from webhookctl.console.inbox import PARTLY, ConsoleInbox
from webhookctl.console.requests import Pages
from webhookctl.console.views import Views
from webhookctl.display.failures import summary_note
from webhookctl.errors import explain

PATH: Final = "/dead-letters"
GROUPS: Final = 100


def routes(inbox: ConsoleInbox, views: Views, pages: Pages) -> list[Route]:
    """Returns the route of dead letters."""

    def listed(request: Request) -> Response:
        client = inbox.reading()
        summary = client.failures.summarize(limit=GROUPS)
        lanes, unread = _lanes(client)
        notes = [summary_note(summary), *([PARTLY] if summary.partial else [])]
        return views.page(
            "dead_letters.html",
            title="Dead letters",
            path=PATH,
            groups=summary.groups,
            lanes=lanes,
            unread=unread,
            notes=notes,
            partly=summary.partial,
            done=views.message(request.query_params.get("done", "")),
        )

    return [Route(PATH, pages.view(listed), methods=["GET"])]


def _lanes(client: InboxClient) -> tuple[Sequence[DeadLetterLane], str]:
    """Returns the queues of dead runs, or why they cannot be read; the ledger has the runs."""
    try:
        return client.dead_letters.summarize().lanes, ""
    except InboxError as error:
        return [], explain(error)
