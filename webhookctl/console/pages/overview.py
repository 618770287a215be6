"""The first page: whatever needs a person, the health, plots, and the newest events."""

from collections.abc import Callable
from functools import partial
from typing import Any, Final
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from webhook_inbox.client.stats import WINDOWS, Figures, StatsWindow
from webhookctl.console.attention import findings, health, needs
from webhookctl.console.background import BackgroundCached
from webhookctl.console.event_list import page_of
from webhookctl.console.filters import BadFilter, EventFilter
from webhookctl.console.inbox import ConsoleInbox
from webhookctl.console.plots import plots
from webhookctl.console.requests import Pages
from webhookctl.console.views import Views

PATH = "/"
# Counts, health and metrics cost calls to AWS: they are at most a minute old. On this machine they
# cost time only.
SECONDS: Final = 60
LOCAL_SECONDS: Final = 10
CHOSEN: Final = "24h"


def routes(inbox: ConsoleInbox, views: Views, pages: Pages) -> list[Route]:
    """Returns the route of the first page."""
    summary = _Summary(inbox)

    def shown(request: Request) -> Response:
        window = _window(request.query_params.get("window", CHOSEN))
        part = request.query_params.get("part")
        if part == "summary":
            return views.fragment("overview/summary.html", **summary.values(window))
        listed: dict[str, Any] = {"page": page_of(inbox, EventFilter()), "older": "/events"}
        if part == "list":
            return views.fragment("events/list.html", **listed)
        return views.page(
            "overview/page.html",
            title="Overview",
            path=PATH,
            live="/?part=list",
            done=views.message(request.query_params.get("done", "")),
            **summary.values(window),
            **listed,
        )

    return [Route(PATH, pages.view(shown))]


class _Summary:
    """Needs, health and plots; each is read in the background, at most once in its period."""

    def __init__(self, inbox: ConsoleInbox) -> None:
        self._inbox = inbox
        self._needs = self._cached(partial(needs, inbox))
        self._findings = self._cached(partial(findings, inbox))
        self._figures: dict[str, BackgroundCached[Figures]] = {
            name: self._cached(partial(self._read_figures, window))
            for name, window in WINDOWS.items()
        }
        inbox.on_change(self._forget)

    def _cached(self, read: Callable[[], Any]) -> BackgroundCached[Any]:
        return BackgroundCached(read, seconds=SECONDS if self._remote else LOCAL_SECONDS)

    def _read_figures(self, window: StatsWindow) -> Figures:
        # The figures have a bound of their own.
        return self._inbox.reading(None).stats.read(window)

    def _forget(self) -> None:
        for each in (self._needs, self._findings, *self._figures.values()):
            each.forget()

    @property
    def _remote(self) -> bool:
        return not self._inbox.begun.selection.local

    def values(self, window: StatsWindow) -> dict[str, Any]:
        """Returns what the template shows."""
        counted, found = self._needs(), self._findings()
        drawn = self._figures[window.name]
        made = drawn()
        errors = "; ".join(filter(None, (self._needs.error, self._findings.error)))
        return {
            "needs": counted or [],
            "findings": found,
            "unfound": self._findings.error or "The checks of doctor are running …",
            "health": health(counted or [], found, errors),
            "plots": plots(made) if made else [],
            "basis": made.basis if made else "",
            "unread": drawn.error,
            "window": window,
            "windows": WINDOWS,
            "summary_live": f"/?{urlencode({'part': 'summary', 'window': window.name})}",
            "seconds": SECONDS if self._remote else LOCAL_SECONDS,
        }


def _window(name: str) -> StatsWindow:
    if name not in WINDOWS:
        raise BadFilter(f"window {name!r}: choose one of {', '.join(WINDOWS)}")
    return WINDOWS[name]
