"""One event: its next action, what can be done, timeline, runs and, on request, its payload."""

from collections.abc import Mapping
from typing import Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from webhook_inbox.client.client import InboxClient
from webhook_inbox.client.errors import NotFound, WrongArgument
from webhook_inbox.client.event_state import EventDetails
from webhook_inbox.client.names import known_source
from webhook_inbox.client.verification import verification_of
from webhook_inbox.domain.errors import InboxError
from webhookctl.console.body_tree import BODY_LIMIT, tree_of
from webhookctl.console.event_offers import next_steps_of, offers_of
from webhookctl.console.inbox import PARTLY, ConsoleInbox
from webhookctl.console.requests import Pages
from webhookctl.console.timeline import timeline_of
from webhookctl.console.views import Views, event_path
from webhookctl.display.copies import Form, copy_of
from webhookctl.errors import CommandError, explain

PATH: Final = "/event"
# The forms of a copy, as the part in the address, with their titles.
COPIES: Final[Mapping[str, str]] = {
    Form.CURL: "curl",
    Form.TEST: "pytest",
    Form.JSON: "JSON",
}


def routes(inbox: ConsoleInbox, views: Views, pages: Pages) -> list[Route]:
    """Returns the route of an event's page and its parts."""
    its = EventPages(inbox, views)
    return [Route(PATH, pages.view(its.shown))]


class EventPages:
    """The page of an event, and the parts of it that are read on request."""

    def __init__(self, inbox: ConsoleInbox, views: Views) -> None:
        self._inbox = inbox
        self._views = views

    def shown(self, request: Request) -> Response:
        """Returns the page, or the part that the address names."""
        part = request.query_params.get("part", "")
        if part in COPIES:
            return self._copy(request, Form(part))
        return self._body(request, part) if part else self._page(request)

    def _page(self, request: Request) -> Response:
        inbox, client = self._inbox, self._inbox.reading()
        details = _get(client, request)
        event, now = details.event, inbox.clock.now()
        offers = offers_of(details, now)
        return self._views.page(
            "event/page.html",
            title=event.event_id,
            path="/events",
            details=details,
            steps=next_steps_of(details, offers, inbox.program),
            offers=offers,
            verified=verification_of(event, known_source(inbox.target, event.source)),
            timeline=timeline_of(details, now),
            body_path=event_path(event.source, event.event_id, part="body"),
            copies=[
                (title, event_path(event.source, event.event_id, part=part))
                for part, title in COPIES.items()
            ],
            partly=PARTLY if client.is_cut else "",
            done=self._views.message(request.query_params.get("done", "")),
        )

    def _body(self, request: Request, part: str) -> Response:
        event = _get(self._inbox.reading(), request, with_body=True).event
        if part == "download" or len(event.body) > BODY_LIMIT:
            return _download(event.event_id, event.body)
        return self._views.fragment(
            "event/body.html", tree=tree_of(event.body), headers=event.headers
        )

    def _copy(self, request: Request, form: Form) -> Response:
        """Returns the event as `inbox export` writes it; personal fields are masked."""
        source, event_id = (request.query_params.get(name, "") for name in ("source", "id"))
        try:
            state = self._inbox.reading().events.export(event_id, source=source)
            text, notes = copy_of(state, form, self._inbox.target)
        except (CommandError, InboxError) as error:
            text, notes = "", [explain(error)]
        return self._views.fragment("event/copy.html", title=COPIES[form], text=text, notes=notes)


def _get(client: InboxClient, request: Request, *, with_body: bool = False) -> EventDetails:
    source, event_id = (request.query_params.get(name, "") for name in ("source", "id"))
    try:
        return client.events.get(event_id, source=source, with_body=with_body)
    except (NotFound, WrongArgument) as error:
        raise NotFound(
            f"no event {event_id} of {source}: it has expired, or its id is another one"
        ) from error


def _download(event_id: str, content: bytes) -> Response:
    """Returns a body as a file, whatever it contains; never as a page."""
    safe = "".join(c if c.isascii() and c.isalnum() else "-" for c in event_id)[:80]
    disposition = f'attachment; filename="{safe or "body"}.bin"'
    return Response(content, 200, {"content-disposition": disposition}, "application/octet-stream")
