"""The console's application: its pages behind the guard."""

from pathlib import Path
from typing import Final

from starlette.applications import Starlette
from starlette.routing import BaseRoute, Mount
from starlette.staticfiles import StaticFiles

from webhookctl.console import actions
from webhookctl.console.guard import Guard, Session
from webhookctl.console.inbox import ConsoleInbox
from webhookctl.console.pages import (
    approvals,
    audit,
    dead_letters,
    event,
    events,
    listings,
    overview,
    rejected,
    replays,
    send,
    sources,
)
from webhookctl.console.requests import Pages
from webhookctl.console.views import Views

FILES: Final = Path(__file__).parent / "static"
PAGES: Final = (
    overview,
    event,
    events,
    dead_letters,
    replays,
    approvals,
    rejected,
    send,
    sources,
    listings,
    audit,
    actions,
)


def application(inbox: ConsoleInbox, session: Session) -> Guard:
    """Returns the application for one inbox and one session.

    The guard is around all of Starlette, whose own answer to an error would lack its headers.
    """
    return Guard(Starlette(routes=routes(inbox, session)), session)


def routes(inbox: ConsoleInbox, session: Session) -> list[BaseRoute]:
    """Returns the routes of all pages and actions, and of the static files."""
    views = Views(inbox, session)
    pages = Pages(inbox, views, session)
    found = [route for page in PAGES for route in page.routes(inbox, views, pages)]
    return [*found, Mount("/static", StaticFiles(directory=FILES))]
