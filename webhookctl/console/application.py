"""The console's application: its pages behind the guard."""

from pathlib import Path
from typing import Final

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.routing import Mount
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


def application(inbox: ConsoleInbox, session: Session) -> Starlette:
    """Returns the application for one inbox and one session."""
    views = Views(inbox, session)
    pages = Pages(inbox, views, session)
    routes = [route for page in PAGES for route in page.routes(inbox, views, pages)]
    return Starlette(
        routes=[*routes, Mount("/static", StaticFiles(directory=FILES))],
        middleware=[Middleware(Guard, session=session)],
    )
