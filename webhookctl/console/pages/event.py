"""One event: its status, next action, timeline, runs and, on request, its payload."""

from dataclasses import replace
from typing import Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from webhook_inbox.domain.model import Overview
from webhook_inbox.domain.personal import masked
from webhookctl.checkout import known_source
from webhookctl.console.body_tree import BODY_LIMIT, tree_of
from webhookctl.console.inbox import ConsoleInbox
from webhookctl.console.requests import Pages
from webhookctl.console.timeline import timeline_of
from webhookctl.console.views import Views, event_path
from webhookctl.display.event import advice, event_object
from webhookctl.errors import CommandError

PATH: Final = "/event"


def routes(inbox: ConsoleInbox, views: Views, pages: Pages) -> list[Route]:
    """Returns the routes of an event's page."""

    def shown(request: Request) -> Response:
        overview = _read(inbox, request)
        event, now = overview.event, inbox.clock.now()
        spec = known_source(inbox.target, event.source)
        limits = {name: each.max_attempts for name, each in inbox.manifest.handlers.items()}
        return views.page(
            "event/page.html",
            title=event.event_id,
            path="/events",
            overview=overview,
            provider=event.source if spec is None else spec.provider,
            steps=advice(overview, now=now, limits=limits, program=inbox.program),
            told=event_object(overview, now=now, limits=limits, logs=inbox.logs),
            timeline=timeline_of(overview, now),
            done=views.message(request.query_params.get("done", "")),
            body_path=event_path(event.source, event.event_id, part="body"),
        )

    def body(request: Request) -> Response:
        overview = _read(inbox, request, with_body=True)
        event = overview.event
        spec = known_source(inbox.target, event.source)
        content = masked(event.body, spec.personal) if spec else event.body
        if request.query_params["part"] == "download" or len(content) > BODY_LIMIT:
            return _download(event.event_id, content)
        return views.fragment("event/body.html", tree=tree_of(content), headers=event.headers)

    def either(request: Request) -> Response:
        return (body if request.query_params.get("part") else shown)(request)

    return [Route(PATH, pages.view(either))]


def _read(inbox: ConsoleInbox, request: Request, *, with_body: bool = False) -> Overview:
    source, event_id = (request.query_params.get(name, "") for name in ("source", "id"))
    ledger = inbox.ledger_with_bodies if with_body else inbox.ledger
    found = ledger.overview(source, event_id, now=inbox.clock.now(), with_body=with_body)
    if found is None:
        raise CommandError(
            f"no event {event_id} of {source}: it has expired, or its id is another one"
        )
    return found if with_body else replace(found, event=replace(found.event, body=b""))


def _download(event_id: str, content: bytes) -> Response:
    """Returns a body as a file, whatever it contains; never as a page."""
    safe = "".join(c if c.isascii() and c.isalnum() else "-" for c in event_id)[:80]
    disposition = f'attachment; filename="{safe or "body"}.bin"'
    return Response(content, 200, {"content-disposition": disposition}, "application/octet-stream")
