"""One event: its next action, what can be done, timeline, runs and, on request, its payload."""

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from webhook_inbox.client.names import known_source
from webhook_inbox.domain.errors import InboxError
from webhook_inbox.domain.model import Overview
from webhook_inbox.domain.personal import masked
from webhookctl.commands.export import Form, export
from webhookctl.commands.inbox import at_present, conflicts
from webhookctl.console.body_tree import BODY_LIMIT, tree_of
from webhookctl.console.event_offers import next_steps_of, offers_of
from webhookctl.console.inbox import ConsoleInbox
from webhookctl.console.requests import Pages
from webhookctl.console.timeline import timeline_of
from webhookctl.console.verification import verification_of
from webhookctl.console.views import Views, event_path
from webhookctl.display.event import advice, event_object, names_of
from webhookctl.errors import CommandError, explain
from webhookctl.invocation import Invocation

PATH: Final = "/event"
# The forms of a copy, as the part in the address: its title, and the field of the export.
COPIES: Final[Mapping[str, tuple[str, str]]] = {
    Form.CURL: ("curl", "command"),
    Form.TEST: ("pytest", "test"),
    Form.JSON: ("JSON", ""),
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
        inbox, overview = self._inbox, self._read(request)
        event, now = overview.event, inbox.clock.now()
        limits = {name: each.max_attempts for name, each in inbox.manifest.handlers.items()}
        steps = advice(overview, now=now, limits=limits, program=inbox.program)
        offers = offers_of(overview, now)
        return self._views.page(
            "event/page.html",
            title=event.event_id,
            path="/events",
            overview=overview,
            steps=next_steps_of(steps, overview, offers, inbox.program),
            offers=offers,
            told=event_object(overview, now=now, limits=limits, logs=inbox.logs),
            verified=verification_of(event, known_source(inbox.target, event.source)),
            conflicts=inbox.examine(_conflicts, event.source, event.event_id),
            timeline=timeline_of(overview, now),
            body_path=event_path(event.source, event.event_id, part="body"),
            copies=[
                (title, event_path(event.source, event.event_id, part=part))
                for part, (title, _) in COPIES.items()
            ],
            done=self._views.message(request.query_params.get("done", "")),
        )

    def _read(self, request: Request, *, with_body: bool = False) -> Overview:
        inbox = self._inbox
        source, event_id = (request.query_params.get(name, "") for name in ("source", "id"))
        ledger = inbox.ledger_with_bodies if with_body else inbox.ledger
        found = ledger.overview(source, event_id, now=inbox.clock.now(), with_body=with_body)
        if found is None:
            raise CommandError(
                f"no event {event_id} of {source}: it has expired, or its id is another one"
            )
        if with_body:
            return found
        return inbox.examine(_at_present, replace(found, event=replace(found.event, body=b"")))

    def _body(self, request: Request, part: str) -> Response:
        overview = self._read(request, with_body=True)
        event = overview.event
        spec = known_source(self._inbox.target, event.source)
        content = masked(event.body, spec.personal) if spec else event.body
        if part == "download" or len(content) > BODY_LIMIT:
            return _download(event.event_id, content)
        return self._views.fragment("event/body.html", tree=tree_of(content), headers=event.headers)

    def _copy(self, request: Request, form: Form) -> Response:
        """Returns the event as `inbox export` writes it; personal fields are masked."""
        source, event_id = (request.query_params.get(name, "") for name in ("source", "id"))
        title, field = COPIES[form]
        try:
            text, notes = self._exported(event_id, form, field, source=source)
        except (CommandError, InboxError) as error:
            text, notes = "", [explain(error)]
        return self._views.fragment("event/copy.html", title=title, text=text, notes=notes)

    def _exported(
        self, event_id: str, form: Form, field: str, **named: str
    ) -> tuple[str, list[str]]:
        values: dict[str, Any] = {"event_id": event_id, "form": form, **named}
        if form is Form.TEST:
            # Those that failed, or else the first: a test of a run that is done is of use as well.
            values["handler"] = self._handler(event_id, **named)
        told = self._inbox.read(export, **values)
        [found] = told.objects
        return (found[field] if field else json.dumps(found, indent=2)), told.notes

    def _handler(self, event_id: str, source: str) -> str | None:
        found = self._inbox.ledger.overview(source, event_id, now=self._inbox.clock.now())
        failed = found is None or any(run.last_error for run in found.runs)
        names = [] if found is None or failed else names_of(found)
        return names[0] if names else None


def _at_present(call: Invocation, overview: Overview) -> Overview:
    return at_present(call.target, overview, call.clock.now())


def _conflicts(call: Invocation, source: str, event_id: str) -> list[str]:
    return conflicts(call.target, source, event_id)


def _download(event_id: str, content: bytes) -> Response:
    """Returns a body as a file, whatever it contains; never as a page."""
    safe = "".join(c if c.isascii() and c.isalnum() else "-" for c in event_id)[:80]
    disposition = f'attachment; filename="{safe or "body"}.bin"'
    return Response(content, 200, {"content-disposition": disposition}, "application/octet-stream")
