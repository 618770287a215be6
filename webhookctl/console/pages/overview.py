"""The first page: whatever needs a person, the health, and the newest events."""

from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from webhookctl.commands.doctor import doctor
from webhookctl.commands.failures import errors
from webhookctl.commands.hold import list_holds
from webhookctl.commands.rejected import list_rejected
from webhookctl.console.event_list import page_of
from webhookctl.console.filters import EventFilter
from webhookctl.console.inbox import ConsoleInbox
from webhookctl.console.requests import Pages
from webhookctl.console.views import Views
from webhookctl.recent import Recent

PATH = "/"
# Counts and health cost calls to AWS: they are at most a minute old.
SECONDS = 60
LISTED = 100


def routes(inbox: ConsoleInbox, views: Views, pages: Pages) -> list[Route]:
    """Returns the route of the first page."""

    def needs() -> list[tuple[str, str]]:
        dead = sum(each["dead"] for each in inbox.read(errors, limit=1000).objects)
        held = len(inbox.read(list_holds, limit=LISTED).objects)
        rejected = len(inbox.read(list_rejected, since="24h", limit=LISTED).objects)
        told = (
            (dead, "dead run", "/dead-letters"),
            (held, "run that waits for a decision", "/approvals"),
            (rejected, "rejected delivery in 24 hours", "/rejected"),
        )
        return [(_counted(number, what), path) for number, what, path in told if number]

    attention = Recent(needs, seconds=SECONDS)
    health = Recent(lambda: inbox.read(doctor).objects, seconds=SECONDS)

    def shown(request: Request) -> Response:
        chosen = EventFilter()
        found = [each for each in health() if each["level"] not in {"ok", "skipped"}]
        values: dict[str, Any] = {
            "page": page_of(inbox, chosen),
            "older": "/events",
            "chosen": chosen,
        }
        if request.query_params.get("part") == "list":
            return views.fragment("events/list.html", **values)
        return views.page(
            "overview.html",
            title="Overview",
            path=PATH,
            needs=attention(),
            findings=found,
            live="/?part=list",
            **values,
        )

    return [Route(PATH, pages.view(shown))]


def _counted(number: int, what: str) -> str:
    least = "at least " if number >= LISTED else ""
    noun = what if number == 1 else what.replace("delivery", "deliveries").replace("run", "runs", 1)
    return f"{least}{number} {noun.replace('runs that waits', 'runs that wait')}"
