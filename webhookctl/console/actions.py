"""The actions of the console: each one is a command, with a page that explains and confirms it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from webhookctl.commands import destinations, erase, handlers, hold, rejected, skip, tenants
from webhookctl.console.inbox import ConsoleInbox
from webhookctl.console.requests import Form, Pages
from webhookctl.console.views import Views
from webhookctl.errors import CommandError

Command = Callable[..., None]


@dataclass(frozen=True, slots=True)
class FormAction:
    """An action.

    Attributes:
        path: its page.
        title: the heading and the button.
        explains: what it does, and what it does not.
        command: the command that it runs.
        names: the parameters of the command that select its subject, from the page's address.
        asks: the parameters that the form asks for, with their labels.
        back: the page to return to, and its entry in the menu.
        fixed: parameters that are always given.
        danger: whether it cannot be undone.
    """

    path: str
    title: str
    explains: str
    command: Command
    names: tuple[str, ...]
    asks: Mapping[str, str]
    back: str
    fixed: Mapping[str, Any] = field(default_factory=dict)
    danger: bool = False

    def address(self, **names: str) -> str:
        """Returns the address of its page for a subject."""
        return f"{self.path}?{urlencode(names)}"

    def values(self, form: Mapping[str, str]) -> dict[str, Any]:
        """Returns the command's parameters in a form; raises CommandError where one is missing."""
        given = {name: form.get(name, "").strip() for name in (*self.names, *self.asks)}
        if missing := [name for name, value in given.items() if not value]:
            raise CommandError(f"{', '.join(missing)}: fill it in")
        return {**given, **self.fixed}


REASON: Final = {"reason": "Reason, for the audit"}
APPROVE = FormAction(
    "/approvals/approve",
    "Approve",
    "The run continues. An effect that is in doubt is performed again with the same key: ask the"
    " destination first whether it happened; one that ignores keys would perform it twice.",
    hold.approve,
    ("event_id", "source", "handler", "hold"),
    REASON,
    "/approvals",
)
HAPPENED = FormAction(
    "/approvals/happened",
    "Record that it happened",
    "The effect is recorded as committed with this result, and is not performed again. The run"
    " continues, and its handler receives the result.",
    hold.approve,
    ("event_id", "source", "handler", "hold"),
    {"result": "Result as JSON, as in a run that is done", **REASON},
    "/approvals",
    fixed={"happened": True},
)
DENY = FormAction(
    "/approvals/deny",
    "Deny",
    "The run ends as skipped. Effects that happened stay.",
    hold.deny,
    ("event_id", "source", "handler", "hold"),
    REASON,
    "/approvals",
    danger=True,
)
PAUSE_HANDLER = FormAction(
    "/handlers/pause",
    "Pause the handler",
    "Its runs wait without an attempt, and none is lost. Other handlers continue: a later event,"
    " such as a cancellation, can take effect before a paused one. Takes effect within 5 seconds.",
    handlers.pause_handler,
    ("name",),
    REASON,
    "/handlers",
)
RESUME_HANDLER = FormAction(
    "/handlers/resume",
    "Resume the handler",
    "Waiting runs are sent from the next minute on, 20 per second.",
    handlers.resume_handler,
    ("name",),
    REASON,
    "/handlers",
)
RESUME_TENANT = FormAction(
    "/tenants/resume",
    "Resume the tenant",
    "Waiting runs of the tenant are sent from the next minute on.",
    tenants.resume_tenant,
    ("name",),
    REASON,
    "/handlers",
)
PAUSE_TENANT = FormAction(
    "/tenants/pause",
    "Pause a tenant",
    "The tenant's runs wait without an attempt, in all handlers; those of other tenants continue.",
    tenants.pause_tenant,
    (),
    {"name": "Tenant", **REASON},
    "/handlers",
)
OPEN = FormAction(
    "/destinations/open",
    "Open the circuit",
    "Runs that call this destination wait without an attempt until the circuit is closed by hand."
    " Calls in progress finish.",
    destinations.open_destination,
    ("name",),
    REASON,
    "/destinations",
)
CLOSE = FormAction(
    "/destinations/close",
    "Close the circuit",
    "Waiting runs return within minutes, at the destination's drain rate.",
    destinations.close_destination,
    ("name",),
    REASON,
    "/destinations",
)
SKIP = FormAction(
    "/skip",
    "Close the dead run",
    "The run ends as skipped and is not replayed with others. Later events of its ordering key"
    " continue.",
    skip.skip,
    ("event_id", "source", "handler"),
    REASON,
    "/events",
)
ERASE = FormAction(
    "/erase",
    "Erase the payload",
    "Deletes body, headers and texts of the event for ever; its runs, attempts and effects stay"
    " listed. It can then no longer be replayed.",
    erase.erase,
    ("event_id", "source"),
    REASON,
    "/events",
    fixed={"yes": True},
    danger=True,
)
RELEASE = FormAction(
    "/rejected/release",
    "Release",
    "Verifies the delivery again with the present secrets. If it is valid, it is recorded as an"
    " event, and its runs are sent; otherwise nothing changes.",
    rejected.release,
    ("source", "id"),
    REASON,
    "/rejected",
    fixed={"yes": True},
)
ACTIONS: Final = (
    APPROVE,
    HAPPENED,
    DENY,
    PAUSE_HANDLER,
    RESUME_HANDLER,
    PAUSE_TENANT,
    RESUME_TENANT,
    OPEN,
    CLOSE,
    SKIP,
    ERASE,
    RELEASE,
)


def routes(inbox: ConsoleInbox, views: Views, pages: Pages) -> list[Route]:
    """Returns the page and the endpoint of each action."""
    return [
        route for each in ACTIONS for route in _routes(each, inbox=inbox, views=views, pages=pages)
    ]


def _routes(action: FormAction, *, inbox: ConsoleInbox, views: Views, pages: Pages) -> list[Route]:
    def shown(request: Request) -> Response:
        names = {name: request.query_params.get(name, "") for name in action.names}
        return views.page(
            "action.html", title=action.title, path=action.back, action=action, names=names
        )

    def performed(_: Request, form: Form) -> str:
        values = action.values(form)
        if action is RELEASE:
            values["ids"] = [values.pop("id")]
        notes = inbox.act(action.command, **values).notes
        return views.after(action.back, f"{action.title}: done. {' '.join(notes)}")

    return [
        Route(action.path, pages.view(shown), methods=["GET"]),
        Route(action.path, pages.action(performed), methods=["POST"]),
    ]
